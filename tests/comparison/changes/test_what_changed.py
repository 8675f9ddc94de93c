"""What variants change is counted from traces alone, and nothing is called better where no label says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from run_folder_fixture import build_run
from synthetic_run import write_run
from unlabelled_run import build_unlabelled

from rag_lab.comparison.changes.change_sentences import changes_told, no_labels
from rag_lab.comparison.changes.what_changed import Changes
from rag_lab.comparison.conclusions import conclusions, topics
from rag_lab.comparison.read_comparison import read_comparison
from rag_lab.records import Answer, Citation, Hit, Question, StageRecord, Trace
from rag_lab.runs.run_folder import RunFolder
from rag_lab.runs.trace_file import write_traces


def hits(order: str, page: int | None = None) -> tuple[Hit, ...]:
    return tuple(Hit(f"{name}#0", f"{name}#0", f"{name}.md", page, 0, 9, 1.0) for name in order)


def trace(name: str, order: str, answer: str | None = None, **answer_fields: Any) -> Trace:
    said = None if answer is None else Answer(answer, **answer_fields)
    record = StageRecord("retrieve", seconds=0.5, tokens_in=3, tokens_out=4)
    return Trace(Question(name, f"Question {name}?"), ranked=hits(order), answer=said, stages=(record,))


def run_of(path: Path, traces: Mapping[str, list[Trace]], changes: Mapping[str, Mapping[str, Any]] = {}) -> Changes:
    plans = {name: dict(changes.get(name, {"rerank.final_k": n + 2})) for n, name in enumerate(traces)}
    plans[next(iter(plans))] = {}
    n = len(next(iter(traces.values())))
    run = write_run(path, plans, {"cost.seconds": {name: [1.0] * n for name in traces}})
    run = replace(run, questions=tuple(one.question.question_id for one in next(iter(traces.values()))))
    run.write_plan()
    for name, some in traces.items():
        write_traces(run.variant_dir(name) / "traces.jsonl", some)
    return read_comparison(path).changes


def test_rankings_and_answers_are_compared_question_by_question(tmp_path: Path) -> None:
    found = run_of(
        tmp_path / "run",
        {
            "base": [trace("a", "xyz", "It is 85 Nm [1]."), trace("b", "xyz", "On Friday."), trace("c", "xyz")],
            "other": [
                trace("a", "xyz", "it is 85 Nm [2]"),
                trace("b", "yxz", "On a Monday."),
                trace("c", "xyz", "New"),
            ],
        },
    )
    base, other = found.variants
    assert (found.asked, found.labelled, found.k) == (3, 0, 5)
    assert (base.rankings, base.answers, base.overlap) == (0, 0, None)
    assert (other.rankings, other.rankings_changed, other.shared) == (3, 1, 1.0)
    assert (other.answers, other.answers_changed) == (
        2,
        1,
    )  # marks of citations are no words; c was not answered before
    assert other.words == pytest.approx(0.5)
    assert (other.seconds, other.tokens) == (0.5, 7)
    assert [one.question_id for one in found.most] == ["b"]


def test_an_answer_in_another_order_of_words_has_changed(tmp_path: Path) -> None:
    traces = {"base": [trace("a", "x", "open, then close")], "other": [trace("a", "x", "close, then open")]}
    found = run_of(tmp_path / "run", traces)
    assert (found.variants[1].answers_changed, found.variants[1].words) == (1, 0)
    assert len(found.most) == 1


def test_a_failed_search_is_no_ranking_and_an_empty_one_is(tmp_path: Path) -> None:
    failed = replace(trace("a", ""), stages=(StageRecord("retrieve", "failed", "down"),))
    found = run_of(tmp_path / "run", {"base": [trace("a", "x"), trace("b", "x")], "other": [failed, trace("b", "")]})
    assert (found.variants[1].rankings, found.variants[1].overlap) == (1, 0)


def test_documents_that_are_cut_otherwise_are_compared_by_page(tmp_path: Path) -> None:
    here = replace(trace("a", ""), ranked=tuple(Hit(f"{n}", f"{n}", "m.pdf", 3, n, n + 1, 1.0) for n in range(3)))
    there = replace(trace("a", ""), ranked=(Hit("all", "all", "m.pdf", 3, 0, 9, 1.0),))
    traces = {"base": [here], "other": [there]}
    assert run_of(tmp_path / "same", traces).variants[1].overlap == 0
    other = run_of(tmp_path / "other", traces, {"other": {"corpus.chunk_size": 400}}).variants[1]
    assert (other.by_page, other.overlap) == (True, 1)


def test_abstentions_and_valid_citations_are_counted(tmp_path: Path) -> None:
    cited = Answer("yes", (Citation(1, "x.md", None),), ("[9]",))
    both = [replace(trace("a", "x"), answer=cited), trace("b", "x", "I do not know.", abstained=True)]
    one = run_of(tmp_path / "run", {"base": both, "other": both}).variants[0]
    assert (one.answered, one.abstained, one.cites) == (2, 1, 1)
    assert one.citations_valid == 0  # the context that it cites is not there


def test_without_labels_no_variant_is_called_better(tmp_path: Path) -> None:
    run = build_unlabelled(tmp_path / "run", 30, 3)
    comparison = read_comparison(run.path)
    assert list(topics(comparison)) == ["Labels", "What changed", "Next"]
    told = " ".join(conclusions(comparison))
    assert "None of the 30 questions has a label" in told and "different is not better" in told
    assert f'rag_lab.prefer("{run.path}")' in told
    assert "raises" not in told and "cannot tell from chance" not in told


def test_what_changes_nothing_is_told_as_such(tmp_path: Path) -> None:
    same = [trace("a", "xy", "yes"), trace("b", "yx", "no")]
    moved = [trace("a", "yx", "yes"), trace("b", "yx", "no")]
    run_of(tmp_path / "run", {"base": same, "still": same, "moved": moved})
    first, second = changes_told(read_comparison(tmp_path / "run"))
    assert first.startswith("C (moved) changes the ranking of 1 of 2 questions (overlap RBO 0.950, ")
    assert second == "B (still) changes no ranking or answer of any question."


def test_one_label_is_enough_to_compare_by_labels(tmp_path: Path) -> None:
    comparison = read_comparison(build_run(tmp_path / "run", 12, 3).path)
    assert no_labels(comparison) == "" and not comparison.is_unlabelled
    assert comparison.changes.labelled == 12
    assert "Labels" not in topics(comparison)
    assert len(comparison.changes.variants) == 3


def test_a_baseline_that_failed_leaves_nothing_to_compare_with(tmp_path: Path) -> None:
    run: RunFolder = build_unlabelled(tmp_path / "run", 5, 2)
    (run.variant_dir("baseline") / "traces.jsonl").unlink()
    comparison = read_comparison(run.path)
    assert comparison.changes.questions == ()
    assert changes_told(comparison) == ["The baseline was not run to its end, so nothing can be compared with it."]
