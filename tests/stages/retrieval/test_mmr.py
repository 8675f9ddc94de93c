import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.stages.retrieval.mmr import maximal_marginal_relevance

EAST, NORTH, NORTH_EAST = [1, 0], [0, 1], [0.5**0.5, 0.5**0.5]
items = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 6)), max_size=8)


def units(angles):
    return np.array([[np.cos(angle), np.sin(angle)] for angle in angles]).reshape(-1, 2)


def test_a_copy_waits_behind_something_new():
    vectors = np.array([EAST, EAST, NORTH])
    chosen = maximal_marginal_relevance([1.0, 0.9, 0.5], vectors, 3, 0.5)
    assert [position for position, _ in chosen] == [0, 2, 1]
    assert [value for _, value in chosen] == pytest.approx([0.5, 0.25, 0.45 - 0.5])


def test_similarity_is_to_the_nearest_of_those_chosen():
    vectors = np.array([EAST, NORTH, NORTH_EAST])
    chosen = maximal_marginal_relevance([1.0, 1.0, 1.0], vectors, 3, 0.6)
    assert chosen[2] == (2, pytest.approx(0.6 - 0.4 * 0.5**0.5))


@given(items, st.integers(1, 9))
def test_with_all_the_weight_on_relevance_it_is_a_sort(given_items, keep):
    relevance = [value for value, _ in given_items]
    chosen = maximal_marginal_relevance(relevance, units([angle for _, angle in given_items]), keep, 1.0)
    order = sorted(range(len(relevance)), key=lambda position: -relevance[position])
    assert [position for position, _ in chosen] == order[:keep]


@given(items, st.integers(1, 9), st.floats(0, 1))
def test_each_is_chosen_once_and_values_never_rise(given_items, keep, trade_off):
    relevance = [value for value, _ in given_items]
    chosen = maximal_marginal_relevance(relevance, units([angle for _, angle in given_items]), keep, trade_off)
    positions, values = [p for p, _ in chosen], [value for _, value in chosen]
    assert len(set(positions)) == len(positions) == min(keep, len(given_items))
    assert all(first >= second - 1e-12 for first, second in zip(values, values[1:], strict=False))
