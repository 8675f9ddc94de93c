from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import bootstrap, poisson, t

from rag_lab.statistics.bootstrap import bca_bounds, expanded_percentile_bounds, poisson_draws
from rag_lab.statistics.resampled_units import Units, units


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
