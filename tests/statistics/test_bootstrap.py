import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import bootstrap, poisson, t

from rag_lab.statistics.bootstrap import Floats, Units, bca_bounds, expanded_percentile_bounds, poisson_draws, units
from rag_lab.statistics.intervals import mean_intervals, paired_differences

quick = settings(max_examples=40, deadline=None)


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
