"""A weight of three counts a unit three times, in means as in medians."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.statistics.pareto.quantities import Means, medians

weights = st.lists(st.integers(0, 4), min_size=6, max_size=6)
values = st.lists(st.integers(0, 9), min_size=6, max_size=12)


@given(values, weights)
def test_a_median_is_that_of_the_units_drawn(found, drawn):
    """Values of 6 units, of which some have two."""
    column, places = np.array(found, dtype=float), np.arange(len(found)) % 6
    every = np.repeat(column, np.array(drawn)[places])
    expected = np.median(every) if len(every) else np.median(column)
    assert medians([column], [places]).at(np.array(drawn, dtype=float)[:, None])[0, 0] == expected


@given(values, weights)
def test_a_mean_is_that_of_the_units_drawn_and_the_parts_add_up(found, drawn):
    column = np.array(found, dtype=float)
    half = len(column) // 2
    parts = [column[:half], column[half:]]
    sums, counts = np.zeros((6, 1, 2)), np.zeros((6, 1, 2))
    expected = 0.0
    for part, one in enumerate(parts):
        places = np.arange(len(one)) % 6
        np.add.at(sums[:, 0, part], places, one)
        np.add.at(counts[:, 0, part], places, 1)
        every = np.repeat(one, np.array(drawn)[places])
        expected += (every if len(every) else one).mean()
    assert Means(sums, counts).at(np.array(drawn, dtype=float)[:, None])[0, 0] == pytest.approx(expected)


def test_what_was_never_measured_is_nothing():
    nothing = np.zeros((3, 2, 0))
    assert Means(nothing, nothing).at(np.ones((3, 4))).tolist() == [[0.0] * 4] * 2
    assert medians([np.zeros(0)], [np.zeros(0, dtype=np.intp)]).at(np.ones((3, 2))).tolist() == [[0.0, 0.0]]


def test_the_order_of_values_does_not_matter():
    random = np.random.default_rng(3)
    column, places, turn = random.random(40), random.integers(0, 9, 40), random.permutation(40)
    drawn = random.poisson(1.0, (9, 50)).astype(float)
    one, other = medians([column], [places]), medians([column[turn]], [places[turn]])
    assert (one.at(drawn) == other.at(drawn)).all()
