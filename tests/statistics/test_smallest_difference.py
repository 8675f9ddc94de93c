from __future__ import annotations

import numpy as np
import pytest

from rag_lab.statistics.smallest_difference import sidak, smallest_difference


@pytest.mark.parametrize(("n", "family"), [(60, 1), (60, 15), (200, 7)])
def test_it_is_found_in_four_of_five_reruns(n: int, family: int) -> None:
    random = np.random.default_rng(0)
    critical = sidak(family, 0.05)
    smallest = smallest_difference(0.2 / n**0.5, n, critical)
    assert smallest is not None
    drawn = random.normal(smallest, 0.2, (n, 4000))
    t = np.abs(drawn.sum(axis=0)) / np.sqrt((drawn**2).sum(axis=0))
    assert (t >= critical).mean() == pytest.approx(0.8, abs=0.04)


def test_nothing_is_shown_without_spread_or_by_too_few() -> None:
    assert smallest_difference(0.0, 100, 2.0) is None
    assert smallest_difference(None, 100, 2.0) is None
    assert smallest_difference(0.1, 4, 2.0) is None
    assert smallest_difference(0.1, 100, None) is None


def test_one_comparison_is_the_normal_distributions() -> None:
    assert sidak(1, 0.05) == pytest.approx(1.959964)
