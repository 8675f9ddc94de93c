from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import permutation_test

from rag_lab.errors import ConfigError
from rag_lab.statistics.randomization import (
    EXACT_UNITS,
    MOST_FLIPS,
    N_FLIPS,
    corrected,
    holm,
    hommel,
    smallest_n,
    statistics_of,
    step_down,
)


def scipy_p_value(differences: np.ndarray) -> float:
    how = {"permutation_type": "samples", "n_resamples": np.inf, "alternative": "two-sided", "vectorized": True}
    return float(permutation_test((differences,), np.mean, **how).pvalue)


def adjusted_by_hand(sums: np.ndarray) -> list[float]:
    """Return the step-down adjusted p-values over every pattern of signs, one at a time, as the papers write them."""
    observed = statistics_of(sums)
    order = sorted(range(sums.shape[1]), key=lambda column: -observed[column])
    patterns = [np.array(signs)[:, None] for signs in product([1.0, -1.0], repeat=len(sums))]
    drawn = [statistics_of(sums * signs) for signs in patterns]
    result, floor = [0.0] * len(order), 0.0
    for place, column in enumerate(order):
        rest = order[place:]
        share = np.mean([max(one[rest]) >= observed[column] - 1e-9 for one in drawn])
        floor = max(floor, float(share))
        result[column] = floor
    return result


@pytest.mark.parametrize("n", [2, 5, 8, 12, EXACT_UNITS])
def test_alone_it_is_the_exact_test_of_scipy(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.3, 1, (n, 3))
    assert step_down(differences).alone == pytest.approx([scipy_p_value(differences[:, one]) for one in range(3)])


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=3, max_size=3), min_size=1, max_size=7)
)
def test_adjusted_it_is_the_step_down_maximum_over_every_pattern(rows: list[list[float]]) -> None:
    sums = np.array(rows)
    assert step_down(sums).adjusted == pytest.approx(adjusted_by_hand(sums))


def test_random_flips_come_near_the_exact_p_values() -> None:
    random = np.random.default_rng(1)
    sums = random.normal(0.45, 1, (15, 2))
    found = step_down(sums)
    exact = adjusted_by_hand(sums)
    assert found.adjusted == pytest.approx(exact, abs=0.004) and found.adjusted[0] != exact[0]


def test_another_seed_hardly_moves_a_p_value() -> None:
    sums = np.random.default_rng(2).normal(0.2, 1, (117, 7))
    several = np.stack([step_down(sums, seed).adjusted for seed in range(6)])
    assert np.ptp(several, axis=0).max() < 0.006


def test_flips_are_spent_where_a_level_is_near() -> None:
    signs = np.where(np.arange(60) % 2, 1.0, -1.0)
    near, none, clear = (np.where(np.arange(60) < n, 1.0, signs) for n in (16, 0, 60))
    assert 0.03 < step_down(near[:, None]).alone[0] < 0.06
    for columns, n_flips in (([near], MOST_FLIPS), ([none, clear], N_FLIPS), ([none, near, clear], MOST_FLIPS)):
        assert len(step_down(np.stack(columns, axis=1)).largest) == n_flips
    assert len(step_down(near[:, None], n_flips=30_000).largest) == 30_000


def test_copies_of_a_comparison_cost_nothing() -> None:
    """Bonferroni would multiply by seven: flips are shared, so the copies are known to be the same."""
    column = np.random.default_rng(3).normal(0.2, 1, (60, 1))
    assert step_down(np.repeat(column, 7, axis=1)).adjusted == pytest.approx(np.repeat(step_down(column).alone, 7))


def test_adjusted_is_never_below_alone_and_grows_with_the_family() -> None:
    sums = np.random.default_rng(4).normal(0.1, 1, (40, 12))
    small, large = step_down(sums[:, :6]), step_down(sums)
    assert (large.adjusted >= large.alone).all()
    assert (large.adjusted[:6] >= small.adjusted - 0.005).all()


def test_by_hand_and_ties_are_not_decided_by_rounding() -> None:
    # 1 + 2 + 3 = 6 is reached by +++ and --- of the eight sign patterns.
    assert step_down(np.array([[1.0], [2.0], [3.0]])).alone[0] == 2 / 8
    # 0.1 + 0.2 differs from 0.3 in binary; in tenths the sums are 0.6 in two patterns and 0 in two.
    assert step_down(np.array([[0.1], [0.2], [-0.3]])).alone[0] == 1.0


def test_a_random_p_value_is_never_zero() -> None:
    assert step_down(np.ones((40, 1)), n_flips=99).alone[0] == 1 / 100
    assert step_down(np.ones((40, 1))).alone[0] > 0


def test_few_differences_among_many_are_enumerated() -> None:
    random = np.random.default_rng(5)
    few = np.array([1.0] * 6 + [0.0] * 100)
    found = step_down(np.stack([few, random.normal(0, 1, 106), np.zeros(106)], axis=1))
    assert found.alone[0] == 2 / 2**6
    assert (found.alone[2], found.adjusted[2]) == (1.0, 1.0)


def test_a_statistic_of_few_units_stays_small() -> None:
    # Student's t of five equal values is infinite.
    assert statistics_of(np.array([[0.2, 0.0]] * 5 + [[0.0, 0.0]] * 9)) == pytest.approx([np.sqrt(5), 0.0])


def test_the_critical_value_is_exceeded_in_a_share_of_alpha() -> None:
    sums = np.random.default_rng(6).normal(0, 1, (80, 5))
    found = step_down(sums, n_flips=10_000)
    assert np.mean(found.largest > found.critical(0.05)) == pytest.approx(0.05, abs=0.001)


@pytest.mark.parametrize("alpha", [0.05, 0.04, 0.01])
def test_smallest_n(alpha: float) -> None:
    n = smallest_n(alpha)
    assert 2 / 2**n < alpha <= 2 / 2 ** (n - 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ours", "theirs"), [(holm, "holm"), (hommel, "hommel"), (lambda some: corrected(some, some, "bh"), "fdr_bh")]
)
@settings(max_examples=30, deadline=None)
@given(p_values=st.lists(st.floats(1e-6, 1), min_size=1, max_size=20))
def test_corrections_are_those_of_statsmodels_and_hommel_is_never_above_holm(ours, theirs, p_values) -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    assert ours(p_values) == pytest.approx(list(multitest.multipletests(p_values, method=theirs)[1]))
    assert all(one <= other + 1e-12 for one, other in zip(hommel(p_values), holm(p_values), strict=True))


def test_holm_and_hommel_by_hand_and_what_was_not_tested_does_not_count() -> None:
    # Smallest times 3, the next times 2, the largest times 1, never falling.
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    # Both are below 0.05, so the larger needs no correction, and the smaller none either.
    assert hommel([0.04, 0.03]) == pytest.approx([0.04, 0.04])
    for corrections in (holm, hommel):
        assert corrections([None, 0.02, None, 0.5]) == [None, 0.04, None, 0.5]
        assert corrections([]) == []


def test_corrections_by_name() -> None:
    assert corrected([0.01, 0.02], [0.03, 0.03], "none") == [0.01, 0.02]
    assert corrected([0.01, 0.02], [0.03, 0.03], "max_t") == [0.03, 0.03]
    assert corrected([0.01, 0.04], [0.03, 0.05], "bh") == [0.02, 0.04]
    with pytest.raises(ConfigError, match="did you mean 'max_t'"):
        corrected([0.1], [0.1], "max-t")  # type: ignore[arg-type]
