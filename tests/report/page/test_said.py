"""What the judge said of a question's scores stands in its card, one click away; why a score failed, in the open."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pandas as pd
from hostile_text import EVIL, controls_in
from html_page import Page

from rag_lab.report.page.report_page import write_report

SUMMARY = "What was said for these scores"


def told(build: ModuleType, folder: Path, reason: str) -> tuple[str, list[str]]:
    """Return a report's page and what unfolds in its cards, where the judge said `reason` of one score."""
    run = build.build_run(folder / "run", 3, 2).path
    scores = pd.read_parquet(run / "scores.parquet")
    scores["reason"] = ""
    scored = scores[(scores["status"] == "scored") & scores["metric"].str.startswith("retrieval.")].index
    scores.loc[scored[0], "reason"] = reason
    failed = scores[(scores["status"] == "failed")].index
    scores.loc[failed, "reason"] = "no JSON came"
    scores.to_parquet(run / "scores.parquet", index=False)
    html = write_report(run).read_text()
    return html, re.findall(rf"<details[^>]*><summary>{SUMMARY}</summary>(.*?)</details>", html, re.DOTALL)


def test_what_was_said_unfolds_a_line_a_judgement(build: ModuleType, tmp_path: Path) -> None:
    html, (one,) = told(build, tmp_path, "supported: The oven is hot. — It says so.\nnot supported: It beeps.")
    assert re.findall(r"<li><bdi>(.*?)</bdi></li>", one) == [
        "supported: The oven is hot. — It says so.",
        "not supported: It beeps.",
    ]
    assert "retrieval." in one and '<b class="letter">A</b>' in one
    assert "no JSON came" not in one
    assert html.index("Scores and costs") < html.index(SUMMARY)


def test_what_was_said_of_a_metric_stands_together(build: ModuleType, tmp_path: Path) -> None:
    run = build.build_run(tmp_path / "run", 3, 2).path
    scores = pd.read_parquet(run / "scores.parquet")
    ours = (scores["status"] == "scored") & scores["metric"].str.startswith("retrieval.")
    scores["reason"] = (scores["metric"] + " in " + scores["variant_id"]).where(ours, "")
    scores.to_parquet(run / "scores.parquet", index=False)
    html = write_report(run).read_text()
    cards = re.findall(rf"<summary>{SUMMARY}</summary>(.*?)</details>", html, re.DOTALL)
    assert len(cards) == 3
    for card in cards:
        metrics = [line.split(" in ")[0] for line in re.findall(r"<li><bdi>(.*?)</bdi>", card)]
        runs = [metric for place, metric in enumerate(metrics) if metric != (metrics[place - 1] if place else "")]
        assert len(set(metrics)) > 1 and len(metrics) > len(runs) == len(set(metrics))


def test_nothing_unfolds_where_nothing_was_said(build: ModuleType, tmp_path: Path) -> None:
    html, found = told(build, tmp_path, "")
    assert not found and SUMMARY not in html


def test_what_a_judge_said_cannot_steer_the_page(build: ModuleType, tmp_path: Path) -> None:
    html, (one,) = told(build, tmp_path, f"useful — </bdi></details><script>alert(1)</script>\n{EVIL}")
    assert "&lt;/details&gt;&lt;script&gt;alert(1)" in one and "EVIL" in one
    assert controls_in(html) == [] and "<script>alert" not in html
    Page(html)
