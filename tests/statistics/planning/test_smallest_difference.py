from __future__ import annotations

import numpy as np
import pytest

from rag_lab.statistics.planning.smallest_difference import critical_value, sidak, smallest_difference
from rag_lab.statistics.resampled_units import Units, units


@pytest.mark.parametrize(("n", "family"), [(60, 1), (60, 15), (200, 7)])
def test_it_is_found_in_four_of_five_reruns(n: int, family: int) -> None:
    random = np.random.default_rng(0)
    pilot, critical = random.normal(0.3, 0.2, 2000), sidak(family)
    smallest = smallest_difference(units(pilot), n, critical)
    assert smallest is not None
    drawn = random.normal(smallest, 0.2, (n, 4000))
    t = np.abs(drawn.sum(axis=0)) / np.sqrt((drawn**2).sum(axis=0))
    assert (t >= critical).mean() == pytest.approx(0.8, abs=0.04)


def test_clusters_are_units() -> None:
    values = np.random.default_rng(1).normal(0, 0.2, 400)
    alone = smallest_difference(units(values), 100, 2.0)
    fours = smallest_difference(Units(np.repeat(values, 1) * 4, np.full(400, 4.0)), 100, 2.0)
    assert fours == pytest.approx(alone)


def test_nothing_is_shown_without_spread_or_by_too_few() -> None:
    assert smallest_difference(units([0.1] * 50), 100, 2.0) is None
    assert smallest_difference(units([]), 100, 2.0) is None
    assert smallest_difference(units([0.0, 0.2] * 30), 4, 2.0) is None


def test_the_critical_value_is_that_of_what_the_data_are() -> None:
    values = np.random.default_rng(2).normal(0, 1, (100, 15))
    assert critical_value(values) == pytest.approx(sidak(15), abs=0.12)
    same = np.repeat(values[:, :1], 15, axis=1)
    assert critical_value(same) == pytest.approx(sidak(1), abs=0.08)
    assert critical_value(same, alpha=0.01) == pytest.approx(sidak(1, 0.01), abs=0.15)
    assert critical_value(np.zeros((20, 3))) == sidak(1)


def test_one_comparison_is_the_normal_distributions() -> None:
    assert sidak(1) == pytest.approx(1.959964)
