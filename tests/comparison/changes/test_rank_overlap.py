"""Rank-biased overlap against values worked out by hand, and against its own definition summed term by term."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.comparison.changes.rank_overlap import rank_biased_overlap, shared_at

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
