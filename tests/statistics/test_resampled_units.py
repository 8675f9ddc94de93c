from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rag_lab.statistics.intervals import mean_intervals, paired_differences
from rag_lab.statistics.resampled_units import Floats, units

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
