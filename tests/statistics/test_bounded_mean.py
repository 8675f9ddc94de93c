import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, ttest_1samp

from rag_lab.statistics.bounded_mean import is_above, lower_bound, p_mean_about, p_mean_not_positive

ERROR = 0.05
VALUES = st.lists(st.floats(-1, 1, width=16), max_size=40)


@pytest.mark.parametrize(("n", "rate"), [(1, 0.3), (5, 0.4), (30, 0.05), (117, 0.05), (500, 0.01), (2000, 0.01)])
@pytest.mark.parametrize("lost", [0, 1, 2, 5])
def test_all_or_nothing_is_the_exact_binomial_test(n: int, rate: float, lost: int) -> None:
    values = np.full((n, 1), rate)
    values[: min(lost, n)] -= 1
    exact = binom.cdf(min(lost, n), n, rate)
    if exact > 1e-6:
        assert p_mean_not_positive(values, np.array([rate - 1])) == pytest.approx([exact], rel=5e-3)


@pytest.mark.parametrize("n", [2, 5, 20])
def test_is_the_chance_that_values_weighed_at_random_have_no_positive_mean(n: int) -> None:
    random = np.random.default_rng(n)
    values = random.uniform(-0.5, 1, (n, 3))
    weights = random.dirichlet(np.ones(n + 1), 200_000)
    drawn = (weights @ np.vstack([values, np.full(3, -0.6)]) <= 0).mean(axis=0)
    assert p_mean_not_positive(values, np.full(3, -0.6)) == pytest.approx(drawn, abs=0.005)


def test_many_values_of_which_none_is_far_away_are_students() -> None:
    values = np.random.default_rng(0).normal(0.01, 0.3, (4000, 1))
    student = ttest_1samp(values[:, 0], 0, alternative="greater").pvalue
    assert p_mean_not_positive(values, np.array([-1.0])) == pytest.approx([student], rel=0.1)


def test_a_column_depends_neither_on_the_others_nor_on_the_order_of_its_values() -> None:
    values = np.random.default_rng(1).uniform(-0.5, 1, (30, 4))
    worst = np.full(4, -1.0)
    whole = p_mean_not_positive(values, worst)
    assert p_mean_not_positive(values[::-1, :2], worst[:2]) == pytest.approx(whole[:2], rel=1e-9)


def test_nothing_above_zero_shows_nothing() -> None:
    assert p_mean_not_positive(np.array([[-0.1, 0.0], [-0.2, 0.0]]), np.array([-1.0, -1.0])).tolist() == [1.0, 1.0]


def test_nothing_below_zero_is_positive_for_sure() -> None:
    values = np.array([[0.3, 0.0], [0.2, 1.0]])
    assert p_mean_not_positive(values, np.zeros(2)) == pytest.approx([0, 0], abs=1e-6)
    assert p_mean_about(values, np.ones_like(values), np.zeros(2)) == pytest.approx([0, 0], abs=1e-6)


@pytest.mark.parametrize("spread", [0.05, 0.15, 0.4])
def test_the_fast_one_is_right_to_a_seventh(spread: float) -> None:
    values = np.random.default_rng(2).normal(0.05, spread, (117, 50))
    values[:, :25] = np.where(np.abs(values[:, :25]) < spread, 0.05, values[:, :25])
    worst = np.full(50, -0.95)
    exact, fast = p_mean_not_positive(values, worst), p_mean_about(values, np.ones_like(values), worst)
    is_near = (exact > 1e-4) & (exact < 0.08)
    assert fast[is_near] == pytest.approx(exact[is_near], rel=1 / 7)


def test_a_value_seen_twice_is_two_values() -> None:
    values = np.array([[0.3], [0.1], [-0.2]])
    twice = p_mean_about(np.vstack([values, values]), np.ones((6, 1)), np.array([-1.0]))
    assert p_mean_about(values, np.full((3, 1), 2.0), np.array([-1.0])) == pytest.approx(twice)


def wealth(values, mean, looks):
    """What a gambler against `mean` ever had, value by value, as the paper has it."""
    have, most = [1.0] * len(looks), 0.0
    seen, total, spread = 0, 0.5, 1 / 16
    for value in values:
        share, claim = (value + 1) / 2, (mean + 1) / 2
        variance = spread / (seen + 1)
        for place, look in enumerate(looks):
            stake = min(math.sqrt(2 * math.log(1 / ERROR) / (variance * look)), 0.75 / claim)
            have[place] *= 1 + stake * (share - claim)
        seen, total = seen + 1, total + share
        spread += (share - total / (seen + 1)) ** 2
        most = max(most, sum(have) / len(have))
    return most


@settings(max_examples=60)
@given(VALUES, st.sampled_from([[10], [15, 40]]))
def test_the_bound_is_the_largest_mean_against_which_the_gambler_ever_won(values, looks):
    bound = lower_bound(values, 1.0, ERROR, looks)
    grid = np.linspace(-0.999, 0.999, 41)
    for mean in grid:
        if abs(mean - bound) > 1e-6:
            assert (wealth(values, mean, looks) >= 1 / ERROR) == (mean < bound)
            assert is_above(values, mean, 1.0, ERROR, looks) == (mean < bound)


@given(VALUES, st.floats(-1, 1, width=16), st.floats(0.5, 4))
def test_more_values_never_take_a_bound_back_and_a_scale_changes_nothing_else(values, more, reach):
    before = lower_bound(values, 1.0, ERROR, [40])
    after = lower_bound([*values, more], 1.0, ERROR, [40])
    assert -1 <= before <= after <= 1
    assert lower_bound([reach * value for value in values], reach, ERROR, [40]) == pytest.approx(reach * before)


def test_nothing_is_told_of_nothing_and_what_lies_beyond_is_refused():
    assert lower_bound([], 2.0, ERROR, [10]) == pytest.approx(-2)
    for wrong in ([1.1], [math.nan]):
        with pytest.raises(ValueError, match="between"):
            lower_bound(wrong, 1.0, ERROR, [10])


def test_the_bound_is_above_the_mean_as_seldom_as_promised_at_any_look_and_finds_what_there_is():
    random = np.random.default_rng(3)
    rare, found = 0, 0
    for _ in range(400):
        skewed = np.where(random.random(120) < 0.1, 0.9, -0.1)  # of mean 0
        rare += is_above(skewed, 0.0, 1.0, ERROR, [20, 60])
        found += is_above(np.clip(random.normal(0.25, 0.35, 60), -1, 1), 0.0, 1.0, ERROR, [20, 60])
    assert rare <= 400 * ERROR + 3 * math.sqrt(400 * ERROR * (1 - ERROR))
    assert found >= 380
