import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from factories import mean_interval, paired_difference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import bootstrap, poisson, t

from rag_lab.statistics.intervals import (
    ENOUGH_DIFFERING,
    FEW_VALUES,
    Floats,
    Units,
    bca_bounds,
    expanded_percentile_bounds,
    mean_intervals,
    paired_differences,
    poisson_draws,
    units,
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
    if len(values) >= 2 and np.ptp(values) > 1e-12:
        assert found.low is not None and found.high is not None and found.mean is not None
        assert found.low <= found.mean + 1e-9 and found.mean - 1e-9 <= found.high
        if len(values) >= FEW_VALUES:
            assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
    else:
        assert found.low is None and found.high is None and found.reason


@pytest.mark.parametrize("n", [2, 5, 9])
def test_few_values_have_students_interval(n: int) -> None:
    """Of five normal values BCa covers the mean 88% of the time, where it should 95%."""
    values = np.random.default_rng(n).normal(size=n)
    low, high = stats.t.interval(0.95, n - 1, values.mean(), stats.sem(values))
    found = mean_interval(values)
    assert (found.low, found.high) == pytest.approx((low, high))


@quick
@given(samples, st.randoms(use_true_random=False))
def test_order_of_values_does_not_matter(values: list[float], random: Any) -> None:
    assert mean_interval(values) == mean_interval(random.sample(values, len(values)))


@pytest.mark.parametrize("reach", [None, 1.0])
@quick
@given(pairs, st.randoms(use_true_random=False))
def test_a_difference_is_complete_its_sides_mirror_and_the_order_does_not_matter(
    reach: float | None, values: list[tuple[float, float]], random: Any
) -> None:
    (a, b), mixed = _columns(values), _columns(random.sample(values, len(values)))
    ours, swapped, other = paired_differences([(a, b), (b, a), mixed], reach=[reach] * 3)
    assert ours == other and ours.sd == swapped.sd
    assert (ours.wins, ours.ties, ours.losses) == (swapped.losses, swapped.ties, swapped.wins)
    ends = (swapped.mean, swapped.high, swapped.low)
    assert (ours.mean, ours.low, ours.high) == tuple(None if one is None else -one for one in ends)
    assert ours.wins + ours.ties + ours.losses == ours.n == len(values)
    assert all(one is None or math.isfinite(one) for one in (ours.mean, ours.low, ours.high, ours.sd))


def test_a_larger_confidence_gives_a_wider_interval() -> None:
    values = list(np.random.default_rng(0).random(50))
    narrow, wide = mean_interval(values, 0.8), mean_interval(values, 0.99)
    assert wide.low < narrow.low < narrow.high < wide.high  # type: ignore[operator]


def test_all_tied() -> None:
    found = paired_difference([0.3, 0.1 + 0.2, 1.0], [0.3, 0.3, 1.0])  # 0.1 + 0.2 is not 0.3 in binary
    assert (found.mean, found.ties) == (0.0, 3)
    assert found.low is None and found.high is None
    assert found.reason == "all 3 values are equal, and the range of the metric is not known"


def test_many_at_once_are_the_same_as_one_by_one() -> None:
    random = np.random.default_rng(0)
    many = [list(random.random(n)) for n in (5, 30, 5, 1, 0, 30)]
    one_by_one = [mean_interval(values) for values in many]
    for ours, theirs in zip(mean_intervals(many), one_by_one, strict=True):
        assert (ours.n, ours.reason, ours.mean) == (theirs.n, theirs.reason, theirs.mean)
        assert ours.low == pytest.approx(theirs.low, abs=1e-12)


def test_the_seed_decides() -> None:
    values = list(np.random.default_rng(0).random(30))
    assert mean_interval(values, seed=1) == mean_interval(values, seed=1)
    assert mean_interval(values, seed=1) != mean_interval(values, seed=2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean_interval([1.0, math.nan]), "finite"),
        (lambda: mean_interval([math.inf]), "finite"),
        (lambda: paired_difference([1.0, 2.0], [1.0]), "got 2 and 1"),
        (lambda: mean_interval([1.0, 2.0], confidence=95), "between 0 and 1"),
    ],
)
def test_what_makes_no_interval_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def _columns(values: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [a for a, _ in values], [b for _, b in values]


def test_intervals_of_four_clusters_cover():
    random = np.random.default_rng(1)
    clusters = [[name for name in "abcd" for _ in range(5)]] * 400
    shifts = np.repeat(random.normal(size=(400, 4)), 5, axis=1) + random.normal(size=(400, 20))
    found = mean_intervals(list(shifts), clusters=clusters)
    covered = np.mean([one.low <= 0 <= one.high for one in found])
    assert 0.92 <= covered <= 0.98  # 0.95, plus or minus 3 standard errors


values_apart = st.lists(st.one_of(st.just(0.0), st.floats(-1, 1)), min_size=2, max_size=60)


def guarded_by_hand(values: Sequence[float], reach: float) -> tuple[float, float]:
    """Append one value at the worst, and at the best, and take Student's t with n degrees of freedom."""
    t = stats.t.ppf(0.975, len(values))
    worst, best = np.append(values, -reach), np.append(values, reach)
    return worst.mean() - t * stats.sem(worst), best.mean() + t * stats.sem(best)


@quick
@given(values_apart)
def test_a_difference_reaches_the_guarded_bounds_where_few_questions_differ(values: list[float]) -> None:
    found = paired_differences([(values, [0.0] * len(values))], reach=[1.0])[0]
    low, high = guarded_by_hand(values, 1.0)
    assert found.low is not None and found.high is not None and -1 <= found.low < found.high <= 1
    if found.n_differing < ENOUGH_DIFFERING:
        assert found.low <= max(-1, low) + 1e-9 and found.high >= min(1, high) - 1e-9


@quick
@given(values_apart, st.sampled_from([1.0, 2.0]))
def test_an_interval_with_a_longer_reach_contains_the_one_with_a_shorter(values: list[float], reach: float) -> None:
    pair = (values, [0.0] * len(values))
    short, long = (paired_differences([pair], reach=[one])[0] for one in (reach, reach + 0.5))
    assert long.low <= short.low < short.high <= long.high  # type: ignore[operator]


@pytest.mark.parametrize(("n", "missed"), [(3, 1.0), (30, 0.0981), (117, 0.0253)])
def test_all_ties_say_how_large_a_difference_so_many_questions_could_have_missed(n: int, missed: float) -> None:
    found = paired_differences([([0.4] * n, [0.4] * n)], reach=[1.0])[0]
    assert (found.low, found.high) == pytest.approx((-missed, missed), abs=5e-5)
    assert found.reason == f"all {n} values are equal; the interval says what {n} could have missed"


def test_where_enough_questions_differ_the_reach_changes_nothing() -> None:
    values = np.random.default_rng(0).normal(0.02, 0.1, ENOUGH_DIFFERING)
    short, long = paired_differences([(values, np.zeros(ENOUGH_DIFFERING))] * 2, reach=[1.0, 1000.0])
    assert short == long and short.high < 0.1  # type: ignore[operator]


def test_a_constant_difference_has_no_interval_of_zero_width() -> None:
    found = paired_differences([([0.5] * 40, [0.25] * 40)])[0]
    assert found.low < 0.25 == found.high  # type: ignore[operator]


def test_equal_values_are_guarded_by_the_range_and_have_no_interval_without_one() -> None:
    ones = [1.0] * 20
    shares, sevens, half_open = mean_intervals([ones, ones, ones], ranges=[(0.0, 1.0), (None, None), (0.0, None)])
    assert (shares.low, shares.high) == pytest.approx((guarded_by_hand(ones, 0.0)[0], 1.0))
    assert shares.reason == "all 20 values are equal; the interval says what 20 could have missed"
    assert sevens.low is sevens.high is half_open.low is half_open.high is None
    assert sevens.reason == "all 20 values are equal, and the range of the metric is not known"


@quick
@given(samples.filter(lambda values: len(values) > 1))
def test_a_guarded_interval_of_a_mean_contains_the_one_without(values: list[float]) -> None:
    bare, guarded = mean_intervals([values, values], ranges=[(None, None), (0.0, 1.0)])
    assert guarded.low < guarded.high  # type: ignore[operator]
    assert bare.low is None or guarded.low <= bare.low <= bare.high <= guarded.high  # type: ignore[operator]


def test_means_are_not_guarded_where_enough_values_differ_from_the_commonest() -> None:
    many, few = [1.0] * 70 + [0.0] * 30, [1.0] * 71 + [0.0] * 29
    bare = mean_intervals([many, few])
    guarded = mean_intervals([many, few], ranges=[(0.0, 1.0)] * 2)
    assert guarded[0] == bare[0] and guarded[1].low < bare[1].low  # type: ignore[operator]


@pytest.mark.parametrize("share", [0.01, 0.05])
def test_intervals_cover_losses_that_are_seldom_seen(share: float) -> None:
    random = np.random.default_rng(3)
    losses = -(random.random((400, 30)) < share).astype(float)
    found = paired_differences([(row, np.zeros(30)) for row in losses], reach=[1.0] * 400)
    assert np.mean([one.low <= -share <= one.high for one in found]) >= 0.93  # type: ignore[operator]


SIZES = (1, 2, 3, 10, 24)


def test_few_clusters_have_the_interval_of_cr2_with_satterthwaites_degrees_of_freedom() -> None:
    random = np.random.default_rng(0)
    clusters = [name for name, size in zip("abcde", SIZES, strict=True) for _ in range(size)]
    values = np.repeat(random.normal(size=5), SIZES) + random.normal(size=sum(SIZES))
    found = mean_intervals([values], clusters=[clusters])[0]
    error, freedom = cr2_by_matrices(values, clusters)
    reach = stats.t.ppf(0.975, freedom) * error
    assert (found.low, found.high) == pytest.approx((values.mean() - reach, values.mean() + reach))


def cr2_by_matrices(values: Floats, clusters: list[str]) -> tuple[float, float]:
    """Return the CR2 error of the mean and its degrees of freedom, in matrices over all values as the papers have."""
    n = len(values)
    design = np.ones((n, 1))
    bread = np.linalg.inv(design.T @ design)
    annihilator = np.eye(n) - design @ bread @ design.T
    variance, vectors = 0.0, []
    for name in dict.fromkeys(clusters):
        rows = [index for index, one in enumerate(clusters) if one == name]
        roots, axes = np.linalg.eigh(annihilator[np.ix_(rows, rows)])
        weights = bread @ design[rows].T @ (axes / np.sqrt(roots)) @ axes.T
        variance += float((weights @ (annihilator @ values)[rows]).item() ** 2)
        vectors.append(annihilator[:, rows] @ weights.ravel())
    between = np.array([[one @ other for other in vectors] for one in vectors])
    return math.sqrt(variance), float(np.trace(between) ** 2 / (between**2).sum())


def test_the_guard_of_clusters_is_one_more_cluster() -> None:
    clusters = [name for name, size in zip("abcde", SIZES, strict=True) for _ in range(size)]
    values = np.repeat([0.0, 0.0, 0.1, 0.0, 0.0], SIZES)
    found = paired_differences([(values, np.zeros(40))], clusters=[clusters], reach=[1.0])[0]
    size = math.sqrt(np.mean(np.square(SIZES)))
    sums, counts = np.array([0, 0, 0.3, 0, 0, -size]), np.array([*SIZES, size])
    mean, shares = sums.sum() / counts.sum(), counts / counts.sum()
    error = math.sqrt(((sums - mean * counts) ** 2 / (1 - shares)).sum()) / counts.sum()
    spread = shares**2 / (1 - shares)
    freedom = 1 / ((shares**2).sum() + spread.sum() ** 2 - (spread**2).sum())
    assert found.low == pytest.approx(max(-1, mean - stats.t.ppf(0.975, freedom) * error))


@quick
@given(st.lists(st.tuples(st.floats(-1, 1), st.integers(0, 6)), min_size=2, max_size=40))
def test_unequal_clusters_have_at_most_as_many_degrees_of_freedom_as_equal_ones(rows: list[tuple[float, int]]) -> None:
    values, clusters = [value for value, _ in rows], [cluster for _, cluster in rows]
    column, n = units(values, clusters), len(set(clusters))
    if n > 1:
        assert 1 - 1e-9 <= column.degrees_of_freedom <= n - 1 + 1e-9
    singles = units(values)
    assert singles.degrees_of_freedom == pytest.approx(len(values) - 1)
    assert singles.standard_error == pytest.approx(stats.sem(values))


@pytest.mark.parametrize(
    ("values", "n"), [([0.0] * 9 + [1.0], 1), ([0.1 + 0.2, 0.3, 0.5], 1), ([0.1, 0.2, 0.3], 3), ([1.0] * 4, 0), ([], 0)]
)
def test_units_that_differ_from_the_commonest_are_counted(values: list[float], n: int) -> None:
    assert units(values).n_uncommon == n


def test_one_more_unit_of_single_values_is_one_more_value() -> None:
    more = units([0.5, 0.25, 1.0]).with_one_more(0.75)
    assert (more.sums.tolist(), more.counts.tolist()) == ([0.25, 0.5, 0.75, 1.0], [1.0] * 4)


def columns(samples: np.ndarray) -> list[Units]:
    return [units(column) for column in samples.T]


@pytest.mark.parametrize("n", [30, 100, 400])
def test_agrees_with_scipy(n: int) -> None:
    samples = np.random.default_rng(n).beta(0.5, 2, (n, 3))
    low, high, defined = bca_bounds(columns(samples), 0.9, seed=0)
    assert defined.all()
    for column in range(3):
        theirs = bootstrap((samples[:, column],), np.mean, confidence_level=0.9, rng=1).confidence_interval
        slack = 0.05 * (theirs.high - theirs.low)  # two sets of 9,999 resamples
        assert low[column] == pytest.approx(theirs.low, abs=slack)
        assert high[column] == pytest.approx(theirs.high, abs=slack)


def test_a_column_does_not_depend_on_its_neighbours() -> None:
    samples = np.random.default_rng(0).random((50, 4))
    together = bca_bounds([*columns(samples), units(np.random.default_rng(1).random(80))], 0.95, seed=3)
    alone = bca_bounds(columns(samples[:, 2:3]), 0.95, seed=3)
    for ours, theirs in zip(together, alone, strict=True):
        assert ours[2] == pytest.approx(theirs[0], abs=1e-12)


def test_no_spread_is_told() -> None:
    low, high, defined = bca_bounds(columns(np.full((5, 1), 0.25)), 0.95, seed=0)
    assert (low[0], high[0], defined[0]) == (0.25, 0.25, False)


def test_covers_the_true_mean_about_as_often_as_it_says() -> None:
    samples = np.random.default_rng(7).exponential(1.0, (60, 400))
    low, high, _ = bca_bounds(columns(samples), 0.9, seed=0)
    covered = ((low <= 1.0) & (high >= 1.0)).mean()
    assert 0.84 <= covered <= 0.94  # 0.9, less what a skewed sample of 60 costs, plus or minus 3 standard errors


def test_expanded_percentiles_are_students_t_for_well_behaved_values() -> None:
    values = np.random.default_rng(2).normal(0, 1, 15)
    low, high = expanded_percentile_bounds([units(values)], 0.95, seed=0)
    theirs = t.interval(0.95, 14, values.mean(), values.std(ddof=1) / np.sqrt(15))
    assert (low[0], high[0]) == pytest.approx(theirs, abs=0.07)
    assert high[0] - low[0] == pytest.approx(theirs[1] - theirs[0], rel=0.06)


@pytest.mark.parametrize("repeated", [2, 5])
def test_clusters_of_copies_say_no_more_than_one_of_each(repeated: int) -> None:
    values = np.random.default_rng(4).random(40)
    copies = units(np.repeat(values, repeated), list(np.repeat(np.arange(40), repeated)))
    clustered = expanded_percentile_bounds([copies], 0.95, seed=0)
    alone = expanded_percentile_bounds([units(values)], 0.95, seed=0)
    assert np.ravel(clustered) == pytest.approx(np.ravel(alone))
    assert copies.standard_error == pytest.approx(units(values).standard_error)


def test_draws_are_poisson_also_where_two_counts_share_a_cell() -> None:
    (drawn,) = poisson_draws(4_000, 5, 2, 1, 300)
    cells = np.random.default_rng([5, 2, 0]).integers(0, 2**16, drawn.shape, dtype=np.uint16).astype(int)
    below, above = poisson.ppf(cells / 2**16, 1.0).clip(0), poisson.ppf((cells + 1) / 2**16, 1.0)
    assert ((drawn >= below) & (drawn <= above)).all()
    for count in range(6):
        assert (drawn == count).mean() == pytest.approx(poisson.pmf(count, 1.0), abs=4 * np.sqrt(0.25 / drawn.size))
    split = below < above
    assert split.sum() > 50
    assert (drawn[split] == above[split]).any() and (drawn[split] == below[split]).any()


def test_the_first_units_are_drawn_as_they_are_without_the_others() -> None:
    (few,), (many,) = poisson_draws(7, 1, 0, 1, 303), poisson_draws(90, 1, 0, 1, 303)
    assert (few == many[:7]).all()
