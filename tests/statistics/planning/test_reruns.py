from __future__ import annotations

import numpy as np
import pytest

from rag_lab.statistics.corrections import hommel
from rag_lab.statistics.non_inferiority.bounded_mean import p_mean_about
from rag_lab.statistics.planning.reruns import MOST_UNITS, for_margin, questions_for_margin
from rag_lab.statistics.resampled_units import Units, units

RANDOM = np.random.default_rng(0)
SPARSE = RANDOM.choice([0.0, 0.0, 0.0, 0.5, -0.5, -1.0, 1.0], (117, 5), p=[0.3, 0.2, 0.2, 0.13, 0.13, 0.02, 0.02])
REACH = np.ones(5)


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
