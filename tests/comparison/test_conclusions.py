"""Data from which nothing can be concluded: a sentence, not an exception or NaN, through the whole report."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from rag_lab.comparison.conclusions import conclusions, topics
from rag_lab.records import StageRecord
from rag_lab.report.page.report_page import to_html, write_report
from rag_lab.report.sections import all_tables
from rag_lab.report.shown_comparison import compare
from rag_lab.report.text.compare_text import write
from rag_lab.runs.omissions import SamePipeline
from rag_lab.runs.trace_file import read_traces, write_traces

NAN = float("nan")
CASES: dict[str, tuple[Any, str]] = {
    "all tied": (np.full(12, 0.5), "No difference from the baseline on any question compared"),
    "all tied at zero": (np.zeros(12), "No difference from the baseline on any question compared"),
    "single question": (np.array([0.5]), "one question has a score"),
    "single question, repeated": (np.array([[0.5], [0.6]]), "one question has a score"),
    "all failed": (np.full(6, NAN), "no question has a score under both"),
    "all failed, repeated": (np.full((2, 6), NAN), "no question has a score under both"),
    "one scored": (np.array([0.5, *[NAN] * 5]), "Some questions could not be scored"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("case", "labelled"), [*((case, True) for case in CASES), ("all failed", False)])
def test_degenerate_data_give_a_sentence(synthetic: ModuleType, tmp_path: Path, case: str, labelled: bool) -> None:
    values, said = CASES[case]
    n = np.atleast_2d(values).shape[1]
    classes = (["fuzzy", "specific"] * n)[:n] if labelled else ()
    step = 0.1 if case.startswith("single") else 0.0
    columns = {name: values + step * index for index, name in enumerate(synthetic.GRID)}
    metrics = {synthetic.MAIN: columns, "citations.precision": columns, "cost.seconds": columns}
    run = synthetic.write_run(tmp_path / "run", synthetic.GRID, metrics, classes, classes)
    found = compare(run.path)
    assert any(said in sentence for sentence in conclusions(found)), conclusions(found)
    shown = [to_html(found), found.to_markdown(), found._repr_html_()]
    shown += [write(conclusions(found), all_tables(found), form) for form in ("text", "markdown", "latex")]
    for text in shown:
        assert not re.search(r"\b(nan|NaN|inf|None(?! was))\b", re.sub(r"<[^>]+>", "", text))


@pytest.mark.parametrize("present", [["none-none"], ["always-none"], []])
def test_a_run_of_which_little_is_left_gives_sentences(
    synthetic: ModuleType, tmp_path: Path, present: list[str]
) -> None:
    columns = {name: np.linspace(0, 1, 5) if name in present else np.full(5, NAN) for name in synthetic.GRID}
    run = synthetic.write_run(tmp_path / "run", synthetic.GRID, {synthetic.MAIN: columns})
    scores = run.scores()
    scores[scores["status"] == "scored"].to_parquet(run.path / "scores.parquet", index=False)
    assert write_report(run.path).is_file()
    found = compare(run.path)
    assert conclusions(found) and found.effects.note and found.effects.table.empty
    assert compare(run.path, pairs="all", correction="bh").to_latex()


def test_a_report_on_answers_of_a_packaged_model_says_that_a_toy_wrote_them(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    def told(model: str) -> str:
        run = synthetic.write_run(tmp_path / model[:4], synthetic.GRID, {synthetic.MAIN: columns})
        for plan in run.variants:
            file = run.variant_dir(plan.variant_id) / "traces.jsonl"
            wrote = StageRecord("generate", model=model)
            write_traces(file, [replace(trace, stages=(*trace.stages, wrote)) for trace in read_traces(file)])
        found = compare(run.path)
        return "\n".join(conclusions(found)) + to_html(found)

    columns = {name: np.linspace(0, 1, 5) for name in synthetic.GRID}
    assert told("llamacpp:smollm2").count("A toy model wrote answers of this run") == 2
    assert "toy" not in told("gemini:gemini-2.5-flash")


def test_what_was_not_run_and_what_came_late_are_told(synthetic: ModuleType, tmp_path: Path) -> None:
    values = {"a": np.linspace(0, 1, 12), "b": np.linspace(0, 0.9, 12)}
    run = synthetic.write_run(tmp_path / "run", {"a": {}, "b": {"rerank.final_k": 2}}, {"retrieval.ndcg@3": values})
    same = [
        SamePipeline(f"seed = {n}", {"seed": n}, "a", "nothing reads seed where nothing is sampled") for n in range(9)
    ]
    margins = {"retrieval.ndcg@3": 0.05}
    replace(run, same=tuple(same), margins=margins, post_hoc_margins=tuple(margins)).write_plan()
    told = conclusions(compare(run.path))
    assert "The margin of retrieval.ndcg@3 is post hoc" in " ".join(told)
    assert any(one.startswith("9 combinations are the same pipelines as others by construction") for one in told)


@pytest.mark.slow
def test_who_played_a_role_that_names_several_models_is_told(synthetic: ModuleType, tmp_path: Path) -> None:
    values = np.linspace(0.2, 0.9, 12)
    run = synthetic.write_run(
        tmp_path / "run",
        {"base": {}, "other": {"corpus.chunk_size": 2000}},
        {synthetic.MAIN: {"base": values, "other": values}},
    )
    text, path = "ollama:a | gemini:b", run.path / "manifest.json"
    manifest = json.loads(path.read_text())
    assert "Models" not in topics(compare(run.path))
    for name, model in (("base", "ollama:a"), ("other", "gemini:b")):
        manifest["variants"][name]["played_by"] = {text: [model]}
    path.write_text(json.dumps(manifest))
    found = compare(run.path)
    (told,) = topics(found)["Models"]
    assert told.startswith(f"Of {text}, the role was played by ollama:a in A (base) and gemini:b in B (other): ")
    assert "the role was played by ollama:a in A (base) and gemini:b in B (other)" in to_html(found)
