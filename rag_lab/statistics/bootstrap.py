"""BCa bootstrap intervals of means, for many samples of the same size at once.

Efron (1987), "Better Bootstrap Confidence Intervals", equations 2.3 and 6.6. `scipy.stats.bootstrap` gives the same
intervals and is what the tests compare with; here the resamples are drawn once, as weights that every sample shares, so
that a table of variants and metrics is one matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

N_RESAMPLES = 9_999
_BATCH_NUMBERS = 2_000_000  # resampled values held in memory at once

Floats = npt.NDArray[np.float64]


def bca_bounds(samples: Floats, confidence: float, seed: int) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """Return the lower and upper bounds of the mean of each column, and where they are BCa.

    Args:
        samples: (n, k) values, n >= 2; each column sorted, if the result is not to depend on the order.
        confidence: between 0 and 1.
        seed: of the resamples.

    Returns:
        Three (k,) arrays. A column where BCa is undefined (no spread, or every resampled mean on one side) gets the
        percentile interval and False.
    """
    means = samples.mean(axis=0)
    resampled = np.concatenate([weights @ samples for weights in _weights(len(samples), seed)])
    tail = (1 - confidence) / 2
    z = np.array([[ndtri(tail)], [ndtri(1 - tail)]])
    with np.errstate(all="ignore"):  # undefined columns are told apart below
        shifted = _bias(resampled, means) + z
        levels = ndtr(_bias(resampled, means) + shifted / (1 - _acceleration(samples - means) * shifted))
    defined = np.isfinite(levels).all(axis=0) & (levels[0] < levels[1])
    levels = np.where(defined, levels, [[tail], [1 - tail]])
    bounds = np.array([np.quantile(column, level) for column, level in zip(resampled.T, levels.T, strict=True)])
    return bounds[:, 0], bounds[:, 1], defined


def _weights(n: int, seed: int) -> Iterator[Floats]:
    """Yield batches of (b, n) rows that sum to 1: how much of each value a resample's mean holds."""
    generator = np.random.default_rng(seed)
    batch = max(1, _BATCH_NUMBERS // n)
    for start in range(0, N_RESAMPLES, batch):
        rows = min(batch, N_RESAMPLES - start)
        cells = generator.integers(0, n, (rows, n)) + n * np.arange(rows)[:, None]
        yield np.bincount(cells.ravel(), minlength=rows * n).reshape(rows, n) / n


def _bias(resampled: Floats, means: Floats) -> Floats:
    """Return z0; a resampled mean equal to the mean (to rounding) counts half on either side."""
    slack = 1e-12 * np.maximum(1, np.abs(means))
    below = (resampled < means - slack).mean(axis=0)
    above = (resampled > means + slack).mean(axis=0)
    result: Floats = ndtri((1 + below - above) / 2)
    return result


def _acceleration(deviations: Floats) -> Floats:
    """Return a: for a mean, the jackknife's skewness is that of the values themselves."""
    result: Floats = (deviations**3).sum(axis=0) / (6 * (deviations**2).sum(axis=0) ** 1.5)
    return result
