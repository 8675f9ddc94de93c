import numpy as np
import pandas as pd
import pytest

from rag_lab.statistics.bootstrap import Units, units
from rag_lab.statistics.bounded_mean import p_mean_about
from rag_lab.statistics.intervals import paired_differences
from rag_lab.statistics.non_inferiority.planning import MOST_UNITS, for_margin, pilot_of, questions_for_margin
from rag_lab.statistics.per_question import per_question
from rag_lab.statistics.randomization import hommel
from rag_lab.statistics.scales import SHARE, Scale

PAIR = {"b": {"b": 1.0, "a": -1.0}}
RANDOM = np.random.default_rng(0)
SPARSE = RANDOM.choice([0.0, 0.0, 0.0, 0.5, -0.5, -1.0, 1.0], (117, 5), p=[0.3, 0.2, 0.2, 0.13, 0.13, 0.02, 0.02])
REACH = np.ones(5)


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


def said(values: np.ndarray, margin: float) -> list[float]:
    """Return the corrected p-values of a rerun with these differences."""
    columns = values.shape[1]
    return [
        float(p or 0)
        for p in hommel(list(p_mean_about(values + margin, np.ones_like(values), np.full(columns, margin - 1))))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("size", [40, 117])
def test_the_statement_comes_in_about_four_of_five_reruns_with_the_questions_named(size: int) -> None:
    random, comes = np.random.default_rng(size), []
    truth = SPARSE - SPARSE.mean(axis=0)
    for number in range(12):
        pilot = truth[random.integers(0, len(truth), size)]
        needed = for_margin(pilot, np.ones_like(pilot), 0.1, REACH, 100, seed=number)[0].needed[0]
        assert needed is not None
        comes += [said(truth[random.integers(0, len(truth), needed)], 0.1)[0] < 0.05 for _ in range(40)]
    assert 0.7 < np.mean(comes) < 0.92


def test_fewer_comparisons_and_wider_margins_take_fewer_questions() -> None:
    narrow, wide = (for_margin(SPARSE, np.ones_like(SPARSE), margin, REACH, 117) for margin in (0.05, 0.1))
    for one, other in zip(narrow, wide, strict=True):
        family, half, alone = one.needed
        assert family is not None and half is not None and alone is not None and other.needed[0] is not None
        assert alone <= half <= family and other.needed[0] < family and one.power < other.power
    assert all(0 <= one.power <= 1 for one in narrow)


def test_ties_take_as_many_as_could_hide_a_loss() -> None:
    # 0.95**59 < 0.05: with fewer questions a loss of 1.0 on 5% of them may stay unseen.
    assert questions_for_margin(units(np.zeros(60)), 0.05, 1.0) == pytest.approx(59, abs=6)
    assert for_margin(np.zeros((60, 1)), np.ones((60, 1)), 0.05, np.ones(1), 80)[0].power == 1.0
    assert for_margin(np.zeros((60, 1)), np.ones((60, 1)), 0.05, np.ones(1), 40)[0].power == 0.0


def test_clusters_are_units() -> None:
    column = Units(np.zeros(60), np.full(60, 4.0))
    assert questions_for_margin(column, 0.05, 1.0) == pytest.approx(59, abs=6)


def test_a_strict_step_takes_more() -> None:
    column = units(SPARSE[:, 0])
    one, many = (questions_for_margin(column, 0.1, 1.0, n) for n in (1, 20))
    assert one is not None and many is not None and one < many


def test_what_nobody_would_ask_is_none() -> None:
    assert questions_for_margin(units(RANDOM.choice([-1.0, 1.0], 50)), 0.01, 1.0) is None
    assert MOST_UNITS == 20_000
