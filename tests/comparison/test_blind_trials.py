"""Blind trials and what they come to."""

from dataclasses import replace
from pathlib import Path

import pytest
from run_folder_fixture import build_unlabelled
from statsmodels.stats.proportion import proportion_confint

from rag_lab.comparison.blind_trials import Preferred, blind_trials
from rag_lab.comparison.comparison import Comparison, read_comparison
from rag_lab.comparison.findings.conclusions import conclusions
from rag_lab.report.page.report_page import to_html
from rag_lab.runs.human_input import Choice, Preference, add_record
from rag_lab.runs.variant_files import write_traces
from rag_lab.statistics.families import lone_answer

PAIR = ("baseline", "rerank.name-query_likelihood")


@pytest.fixture
def comparison(tmp_path: Path) -> Comparison:
    return read_comparison(build_unlabelled(tmp_path / "run", 30, 3).path)


def judge(comparison: Comparison, wins: int, losses: int, ties: int = 0, skipped: int = 0) -> Comparison:
    """Let a person prefer the second variant `wins` times, and so on, and read the run again."""
    wanted: list[str] = [PAIR[1]] * wins + [PAIR[0]] * losses + ["same"] * ties + ["skip"] * skipped
    for trial, one in zip(blind_trials(comparison, PAIR).trials, wanted, strict=False):
        choice: Choice = one if one in ("same", "skip") else "left" if one == trial.left else "right"  # type: ignore[assignment]
        made = Preference(trial.question.question_id, trial.left, trial.right, choice, trial.shown)
        add_record(comparison.run.path, made)
    return read_comparison(comparison.run.path)


def test_sides_and_order_are_drawn_and_the_same_again(comparison: Comparison) -> None:
    found = blind_trials(comparison, PAIR)
    assert found == blind_trials(comparison, PAIR)
    assert {trial.left for trial in found.trials} == set(PAIR) == {trial.right for trial in found.trials}
    order = [trial.question.question_id for trial in found.trials]
    assert order != sorted(order)
    assert order != [trial.question.question_id for trial in blind_trials(comparison, PAIR, seed=1).trials]
    other_way = blind_trials(comparison, (PAIR[1], PAIR[0]))
    assert [trial.shown for trial in other_way.trials] == [trial.shown for trial in found.trials]


def test_what_is_alike_is_not_asked(comparison: Comparison) -> None:
    path = comparison.run.variant_dir(PAIR[1]) / "traces.jsonl"
    traces = comparison.run.traces(PAIR[0])
    write_traces(path, [*traces[:20], *comparison.run.traces(PAIR[1])[20:]])
    found = blind_trials(read_comparison(comparison.run.path), PAIR)
    assert (found.alike, len(found.trials)) == (20, 10)


def test_without_answers_passages_are_compared(comparison: Comparison) -> None:
    for variant in PAIR:
        silent = [replace(trace, answer=None) for trace in comparison.run.traces(variant)]
        write_traces(comparison.run.variant_dir(variant) / "traces.jsonl", silent)
    found = blind_trials(read_comparison(comparison.run.path), PAIR)
    assert found.trials and not any(side.is_answer for trial in found.trials for side in trial.sides)
    assert all(len(side.places) == 10 and side.places[0][2] for side in found.trials[0].sides)


def test_a_clear_preference_is_told_as_one(comparison: Comparison) -> None:
    judged = judge(comparison, wins=14, losses=2, ties=3, skipped=1)
    (found,) = judged.preferences
    assert (found.difference.wins, found.difference.losses, found.difference.ties, found.skipped) == (14, 2, 3, 1)
    assert found.sentence.startswith(
        "A person who saw no names preferred B (rerank.name=query_likelihood) on 14 of 19 questions, A (baseline) on "
        "2, neither on 3 (88% of those decided [64% to 97%], p "
    )
    assert "B (rerank.name=query_likelihood) is reliably preferred. 1 question skipped." in found.sentence
    assert found.sentence in conclusions(judged)
    assert "Preferred by a person who saw no names" in to_html(judged)


def test_what_chance_could_do_is_no_preference(comparison: Comparison) -> None:
    (found,) = judge(comparison, wins=6, losses=4).preferences
    assert "the data cannot tell" in found.sentence and "reliably" not in found.sentence


def test_choices_between_other_texts_do_not_count(comparison: Comparison) -> None:
    judged = judge(comparison, wins=6, losses=0)
    path = judged.run.variant_dir(PAIR[1]) / "traces.jsonl"
    traces = judged.run.traces(PAIR[1])
    changed = {trial.question.question_id for trial in blind_trials(judged, PAIR).trials[:6]}
    traces = [
        replace(trace, answer=replace(trace.answer, text="Something else."))
        if trace.answer and trace.question.question_id in changed
        else trace
        for trace in traces
    ]
    write_traces(path, traces)
    (found,) = read_comparison(judged.run.path).preferences
    assert found.difference.n == 6 - found.stale and found.stale > 0
    assert f"{found.stale} choices between texts that have changed since: not counted." in found.sentence


@pytest.mark.parametrize(("wins", "losses"), [(14, 4), (1, 0), (0, 7), (50, 50)])
def test_the_interval_is_wilson_s(wins: int, losses: int) -> None:
    found = Preferred("b", "a", lone_answer([1.0] * wins + [-1.0] * losses), 0, 0, ("B", "A")).interval
    assert found == pytest.approx(proportion_confint(wins, wins + losses, method="wilson"))
