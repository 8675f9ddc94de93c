from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_sample import mean_interval, paired_difference
from scipy import stats
from scipy.stats import ttest_rel

from rag_lab.statistics.intervals import (
    FEW_UNITS,
    mean_intervals,
    paired_differences,
)

scores = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0]))
samples = st.lists(scores, max_size=15)
pairs = st.lists(st.tuples(scores, scores), max_size=15)
quick = settings(max_examples=40, deadline=None)


@quick
@given(samples)
def test_never_nan_and_ordered(values: list[float]) -> None:
    found = mean_interval(values)
    assert found.n == len(values)
    numbers = [number for number in (found.mean, found.low, found.high) if number is not None]
    assert all(math.isfinite(number) for number in numbers)
    if len(values) >= 2:
        assert found.low is not None and found.high is not None
        assert found.low <= found.mean + 1e-9 and found.mean - 1e-9 <= found.high
        if len(values) >= FEW_UNITS:
            assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
    else:
        assert found.low is None and found.high is None and found.reason


@pytest.mark.parametrize("n", [2, 5, 9])
def test_few_values_have_students_interval(n: int) -> None:
    """Of five normal values BCa covers the mean 88% of the time, where it should 95%."""
    values = np.random.default_rng(n).normal(size=n)
    low, high = stats.t.interval(0.95, n - 1, values.mean(), stats.sem(values))
    found, difference = mean_interval(values), paired_difference(values, np.zeros(n))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert (difference.low, difference.high) == pytest.approx((low, high))


@quick
@given(samples, st.randoms(use_true_random=False))
def test_order_of_values_does_not_matter(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert mean_interval(values) == mean_interval(shuffled)


@quick
@given(pairs, st.randoms(use_true_random=False))
def test_order_of_questions_does_not_matter(values: list[tuple[float, float]], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert paired_difference(*_columns(values)) == paired_difference(*_columns(shuffled))


@quick
@given(pairs)
def test_swapping_sides_mirrors(values: list[tuple[float, float]]) -> None:
    a, b = _columns(values)
    ours, swapped = paired_difference(a, b), paired_difference(b, a)
    assert (ours.wins, ours.ties, ours.losses) == (swapped.losses, swapped.ties, swapped.wins)
    assert ours.p_value == swapped.p_value and ours.sd == swapped.sd
    assert (ours.mean, ours.low, ours.high) == (
        _negative(swapped.mean),
        _negative(swapped.high),
        _negative(swapped.low),
    )


@quick
@given(pairs)
def test_a_difference_is_complete_and_never_nan(values: list[tuple[float, float]]) -> None:
    found = paired_difference(*_columns(values))
    assert found.wins + found.ties + found.losses == found.n == len(values)
    assert (found.p_value is None) == (not values)
    for number in (found.mean, found.low, found.high, found.p_value, found.sd):
        assert number is None or math.isfinite(number)
    assert found.p_value is None or 0 < found.p_value <= 1


def test_a_larger_confidence_gives_a_wider_interval() -> None:
    values = list(np.random.default_rng(0).random(50))
    narrow, wide = mean_interval(values, 0.8), mean_interval(values, 0.99)
    assert wide.low < narrow.low < narrow.high < wide.high  # type: ignore[operator]


def test_all_equal_says_so() -> None:
    found = mean_interval([1.0] * 20)
    assert (found.mean, found.low, found.high) == (1.0, 1.0, 1.0)
    assert "all 20 values are equal" in found.reason


def test_all_tied() -> None:
    found = paired_difference([0.3, 0.1 + 0.2, 1.0], [0.3, 0.3, 1.0])  # 0.1 + 0.2 is not 0.3 in binary
    assert (found.mean, found.p_value, found.ties) == (0.0, 1.0, 3)


def test_many_at_once_are_the_same_as_one_by_one() -> None:
    random = np.random.default_rng(0)
    many = [list(random.random(n)) for n in (5, 30, 5, 1, 0, 30)]
    one_by_one = [mean_interval(values) for values in many]
    for ours, theirs in zip(mean_intervals(many), one_by_one, strict=True):
        assert (ours.n, ours.reason, ours.mean) == (theirs.n, theirs.reason, theirs.mean)
        assert ours.low == pytest.approx(theirs.low, abs=1e-12)
    other = [list(random.random(len(values))) for values in many]
    pairs = list(zip(many, other, strict=True))
    assert [d.p_value for d in paired_differences(pairs)] == [paired_difference(a, b).p_value for a, b in pairs]


def test_p_value_is_near_the_t_test_for_many_well_behaved_values() -> None:
    random = np.random.default_rng(4)
    a, b = random.normal(0.55, 0.2, 200), random.normal(0.5, 0.2, 200)
    found = paired_difference(list(a), list(b))
    assert found.p_value == pytest.approx(float(ttest_rel(a, b).pvalue), abs=0.01)
    assert found.sd == pytest.approx(float(np.std(a - b, ddof=1)))


def test_the_seed_decides() -> None:
    values = list(np.random.default_rng(0).random(30))
    assert mean_interval(values, seed=1) == mean_interval(values, seed=1)
    assert mean_interval(values, seed=1) != mean_interval(values, seed=2)


@pytest.mark.parametrize("values", [[1.0, float("nan")], [float("inf")]])
def test_what_is_not_a_number_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        mean_interval(values)


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="got 2 and 1"):
        paired_difference([1.0, 2.0], [1.0])


def test_confidence_must_be_a_probability() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        mean_interval([1.0, 2.0], confidence=95)


def _columns(values: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [a for a, _ in values], [b for _, b in values]


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


def test_few_clusters_have_students_interval_of_the_cluster_robust_error():
    random = np.random.default_rng(0)
    clusters = [name for name in "abcd" for _ in range(5)]
    a, b = random.random(20), random.random(20)
    found = paired_differences([(a, b)], clusters=[clusters])[0]
    means = (a - b).reshape(4, 5).mean(axis=1)  # of equal size, so the robust error is that of the cluster means
    low, high = stats.t.interval(0.95, 3, loc=means.mean(), scale=stats.sem(means))
    assert (found.low, found.high) == pytest.approx((low, high))


def test_intervals_of_four_clusters_cover():
    random = np.random.default_rng(1)
    clusters = [[name for name in "abcd" for _ in range(5)]] * 400
    shifts = np.repeat(random.normal(size=(400, 4)), 5, axis=1) + random.normal(size=(400, 20))
    found = mean_intervals(list(shifts), clusters=clusters)
    covered = np.mean([one.low <= 0 <= one.high for one in found])
    assert 0.92 <= covered <= 0.98  # 0.95, plus or minus 3 standard errors
