"""Rank-biased overlap against values worked out by hand, and against its own definition summed term by term."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_folder_fixture import build_run, build_unlabelled
from synthetic_run import write_run

from rag_lab.comparison.comparison import read_comparison
from rag_lab.comparison.findings.conclusions import conclusions, topics
from rag_lab.comparison.findings.trace_findings import changes_sentences
from rag_lab.comparison.tables.changes import Changes, rank_biased_overlap, shared_at
from rag_lab.records import Answer, Citation, Hit, Question, StageRecord, Trace
from rag_lab.runs.run_folder import RunFolder
from rag_lab.runs.variant_files import write_traces

RANKINGS = st.lists(st.integers(0, 12), max_size=9, unique=True)
PERSISTENCE = st.floats(0.05, 0.97)


def by_definition(first: Sequence[int], second: Sequence[int], persistence: float, depths: int = 3000) -> float:
    """(1 - p) times the sum of p^(d-1) times the agreement at depth d, far beyond the ends of both lists.

    Beyond the end of the shorter list, what it does not show is taken to agree as its seen part does at its end, and
    beyond the longer one the agreement stays.
    """
    short, long = sorted((first, second), key=len)
    total, agreement = 0.0, 0.0
    for depth in range(1, depths):
        if depth <= len(long):
            seen = len(set(short[:depth]) & set(long[:depth]))
            if depth > len(short):
                seen_there = len(set(short) & set(long[: len(short)]))
                agreement = (seen + seen_there / len(short) * (depth - len(short))) / depth
            else:
                agreement = seen / depth
        total += (1 - persistence) * persistence ** (depth - 1) * agreement
    return total


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("abc", "abc", 1.0),
        ("abc", "xyz", 0.0),
        # agreements 1, 1, 2/3 and 2/3 for ever: 0.1 * (1 + 0.9 + 0.81 * 2/3) + 0.729 * 2/3
        ("abc", "abd", 0.73),
        # agreements 0, 1 and 1 for ever: 0.1 * (0 + 0.9) + 0.81
        ("ab", "ba", 0.9),
        ("ab", "abcd", 1.0),  # a list and its own beginning
        ("", "", 1.0),
        ("", "a", 0.0),
        ("aab", "ab", 1.0),
    ],
)
def test_values_worked_out_by_hand(first: str, second: str, expected: float) -> None:
    assert rank_biased_overlap(first, second, 0.9) == pytest.approx(expected)


@given(RANKINGS.filter(bool), RANKINGS.filter(bool), PERSISTENCE)
def test_it_is_what_the_definition_sums_to(first: list[int], second: list[int], persistence: float) -> None:
    expected = by_definition(first, second, persistence)
    assert rank_biased_overlap(first, second, persistence) == pytest.approx(expected, abs=1e-9)


@given(RANKINGS, RANKINGS, PERSISTENCE)
def test_it_is_symmetric_and_within_its_bounds(first: list[int], second: list[int], persistence: float) -> None:
    found = rank_biased_overlap(first, second, persistence)
    assert found == rank_biased_overlap(second, first, persistence)
    assert 0 <= found <= 1
    assert rank_biased_overlap(first, first, persistence) == pytest.approx(1)
    assert (found == 0) == (not set(first) & set(second) and bool(first or second))


@given(st.lists(st.integers(), min_size=3, max_size=9, unique=True))
def test_a_swap_at_the_top_weighs_more_than_one_at_the_end(ranking: list[int]) -> None:
    top = [ranking[1], ranking[0], *ranking[2:]]
    end = [*ranking[:-2], ranking[-1], ranking[-2]]
    assert rank_biased_overlap(ranking, top) <= rank_biased_overlap(ranking, end)


def test_what_the_tops_share() -> None:
    assert shared_at("abcde", "baxyz", 2) == 1
    assert shared_at("abcde", "baxyz", 5) == pytest.approx(2 / 5)
    assert shared_at("ab", "abcde", 5) == pytest.approx(2 / 5)  # three of the longer one are not shared
    assert shared_at("", "", 5) == 1 and shared_at("", "a", 5) == 0


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
    assert 'rag_lab.prefer("results/' in told
    assert "raises" not in told and "cannot tell from chance" not in told


def test_what_changes_nothing_is_told_as_such(tmp_path: Path) -> None:
    same = [trace("a", "xy", "yes"), trace("b", "yx", "no")]
    moved = [trace("a", "yx", "yes"), trace("b", "yx", "no")]
    run_of(tmp_path / "run", {"base": same, "still": same, "moved": moved})
    first, second = changes_sentences(read_comparison(tmp_path / "run"))
    assert first.startswith("C (moved) changes the ranking of 1 of 2 questions (overlap RBO 0.950, ")
    assert second == "B (still) changes no ranking or answer of any question."


def test_one_label_is_enough_to_compare_by_labels(tmp_path: Path) -> None:
    comparison = read_comparison(build_run(tmp_path / "run", 12, 3).path)
    assert not comparison.is_unlabelled
    assert comparison.changes.labelled == 12
    assert "Labels" not in topics(comparison)
    assert len(comparison.changes.variants) == 3


def test_a_baseline_that_failed_leaves_nothing_to_compare_with(tmp_path: Path) -> None:
    run: RunFolder = build_unlabelled(tmp_path / "run", 5, 2)
    (run.variant_dir("baseline") / "traces.jsonl").unlink()
    comparison = read_comparison(run.path)
    assert comparison.changes.questions == ()
    assert changes_sentences(comparison) == ["The baseline was not run to its end, so nothing can be compared with it."]
