"""Which questions are in clusters, and which are not, is said wherever conclusions are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType

from rag_lab.comparison.findings.conclusions import conclusions
from rag_lab.report.page.report_page import to_html
from rag_lab.report.shown_comparison import compare


def test_clusters_are_told_in_every_report(build: ModuleType, tmp_path: Path) -> None:
    run = replace(build.build_run(tmp_path / "run"), clusters="document")
    run.write_plan()
    found = compare(run.path)
    said = "11 of 12 questions are in 5 clusters (document)"
    for text in (found.to_markdown(), to_html(found), found._repr_html_(), " ".join(conclusions(found))):
        assert said in text
    assert "1 other stands alone" in found.to_markdown()


def test_a_rule_that_matches_nothing_is_said_where_a_run_has_it(build: ModuleType, tmp_path: Path) -> None:
    run = replace(build.build_run(tmp_path / "run"), clusters="tag:zzz")
    run.write_plan()
    found = compare(run.path)
    for text in (found.to_markdown(), to_html(found)):
        assert "No question is in a cluster (tag:zzz)" in text
        assert "0 clusters" not in text
