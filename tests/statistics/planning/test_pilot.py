from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rag_lab.statistics.intervals import paired_differences
from rag_lab.statistics.per_question import per_question
from rag_lab.statistics.planning.pilot import pilot_of
from rag_lab.statistics.scales import SHARE, Scale

PAIR = {"b": {"b": 1.0, "a": -1.0}}


def questions(n: int = 40, failed: int = 0, apart: int = 10) -> pd.DataFrame:
    rows = []
    for i in range(n):
        for variant, value in (("a", 0.5), ("b", 0.75 if i < apart else 0.5)):
            fails = variant == "b" and i >= n - failed
            rows.append((variant, f"q{i:02}", "m", None if fails else value, "failed" if fails else "scored", ""))
    table = pd.DataFrame(rows, columns=["variant_id", "question_id", "metric", "value", "status", "reason"])
    return per_question(table.sample(frac=1, random_state=0))


def test_differences_are_one_a_question_and_failures_count_at_the_worst() -> None:
    pilot = pilot_of(questions(failed=2), "m", PAIR, SHARE)
    assert pilot.sums[:, 0].tolist() == [0.25] * 10 + [0.0] * 28 + [-0.5] * 2
    assert pilot.counts.sum() == 40 and pilot.reach is not None and pilot.reach.tolist() == [1.0]


def test_without_a_range_failures_do_not_count_and_nothing_has_a_reach() -> None:
    pilot = pilot_of(questions(failed=2), "m", PAIR, Scale(None, None))
    assert pilot.counts.sum() == 38 and pilot.reach is None


def test_less_is_better_is_turned() -> None:
    assert pilot_of(questions(), "m", PAIR, Scale(higher_is_better=False)).sums.min() == -0.25


def test_clusters_are_summed() -> None:
    pilot = pilot_of(questions(), "m", PAIR, SHARE, {f"q{i:02}": i // 5 for i in range(40)})
    assert pilot.sums[:, 0].tolist() == [1.25, 1.25, 0, 0, 0, 0, 0, 0]
    assert pilot.counts[:, 0].tolist() == [5.0] * 8
    assert pilot.problem(0, "cluster") == "only 2 of 8 clusters differ, too few to know how large differences become"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, ""),
        ({"n": 39}, "39 questions were compared, and it takes 40"),
        ({"apart": 5}, "only 5 of 40 questions differ, too few to know how large differences become"),
        ({"apart": 1}, "only 1 of 40 questions differs, too few to know how large differences become"),
        ({"apart": 0}, "none of 40 questions differs, too few to know how large differences become"),
    ],
)
def test_what_cannot_be_planned_has_a_reason(given: dict[str, int], said: str) -> None:
    assert pilot_of(questions(**given), "m", PAIR, SHARE).problem(0) == said


def test_the_interval_that_is_planned_is_the_one_that_will_be_guarded() -> None:
    pilot = pilot_of(questions(), "m", PAIR, SHARE)
    seen = paired_differences([([0.25] * 10 + [0.0] * 30, [0.0] * 40)], reach=[1.0])[0]
    assert seen.mean is not None and seen.low is not None
    assert pilot.interval_reach(0, 40) == pytest.approx(seen.mean - seen.low, rel=0.05)
    assert pilot.interval_reach(0, 160) == 0.0  # 40 will differ


def test_a_variant_that_was_not_run_has_no_question() -> None:
    pilot = pilot_of(questions(), "m", {**PAIR, "c": {"c": 1.0, "a": -1.0}}, SHARE)
    assert pilot.problem(1) == "0 questions were compared, and it takes 40"
    assert np.isfinite(pilot.sums).all()
