"""The paired randomization test: under the null hypothesis, the sign of every difference is a coin flip.

Fisher (1935), "The Design of Experiments", section 21; Smucker, Allan and Carterette (2007) recommend it for comparing
retrieval runs. It assumes nothing about the shape of the differences. Clusters of questions flip together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

N_PERMUTATIONS = 50_000
_FLIPS_PER_TEST = 40  # so that Holm's strictest step can still be met: a corrected p-value can fall to 1 / 40
_BATCH = 1_000  # flips held in memory at once; fixed, as the flips depend on it

Floats = npt.NDArray[np.float64]


def n_flips(n_tests: int) -> int:
    """Return how many random flips a family of so many tests takes."""
    return max(N_PERMUTATIONS, _FLIPS_PER_TEST * n_tests)


def sign_flip_p_values(columns: Sequence[Floats], seed: int, n_permutations: int = N_PERMUTATIONS) -> Floats:
    """Return the two-sided p-value of the mean of each column being zero.

    With n differences that are not zero (a zero has no sign) exact by enumeration where 2**n <= m, else
    (b + 1) / (m + 1) over m random flips. Neither the order within a column nor the other columns matter.

    Args:
        columns: k samples of differences (or of cluster sums), of any lengths.
        seed: of the random flips.
        n_permutations: m, at least 1.

    Returns:
        (k,) p-values; 1 for a column without any difference.
    """
    magnitudes = [np.sort(np.abs(column[column != 0])) for column in columns]
    # Sums that differ by rounding alone are equal: without the slack, ties would be decided by noise.
    thresholds = np.array([abs(column.sum()) - 1e-9 * np.abs(column).sum() for column in columns])
    result = np.ones(len(columns))
    few = [index for index, column in enumerate(magnitudes) if 2 ** len(column) <= n_permutations]
    many = [index for index, column in enumerate(magnitudes) if 2 ** len(column) > n_permutations]
    for index in few:
        result[index] = _exact(magnitudes[index], thresholds[index])
    if many:
        stacked = _stacked([magnitudes[index] for index in many])
        extreme = sum(
            _n_extreme(kept.T @ stacked, stacked, thresholds[many])
            for kept in _random_halves(len(stacked), seed, n_permutations)
        )
        result[many] = (extreme + 1) / (n_permutations + 1)
    return result


def smallest_n(alpha: float) -> int:
    """Return how many pairs the exact test needs before its p-value can fall below `alpha`."""
    return int(np.floor(np.log2(2 / alpha))) + 1


def _exact(magnitudes: Floats, threshold: float) -> float:
    """Return the share of (2**(n-1), n) sign patterns; the other half are mirror images and just as extreme."""
    if len(magnitudes) == 0:
        return 1.0
    kept = _halves(len(magnitudes)) @ magnitudes
    return float(_n_extreme(kept[:, None], magnitudes[:, None], threshold)[0] / len(kept))


@cache
def _halves(n: int) -> Floats:
    """Return which of n differences keep their sign, (2**(n-1), n): every pattern in which the first does."""
    patterns = np.arange(2 ** (n - 1))[:, None] >> np.arange(n - 1)[None, :] & 1
    return np.hstack([np.ones((len(patterns), 1)), patterns.astype(np.float64)])


def _n_extreme(kept: Floats, magnitudes: Floats, threshold: Floats | float) -> npt.NDArray[np.int64]:
    """Count for each column the flips whose sum is as far from zero as was seen.

    Args:
        kept: (m, k), the sums of those that keep their sign; the sum of a flip is twice that minus the whole.
        magnitudes: (n, k).
        threshold: (k,).
    """
    whole = magnitudes.sum(axis=0)
    counts: npt.NDArray[np.int64] = ((kept >= (whole + threshold) / 2) | (kept <= (whole - threshold) / 2)).sum(axis=0)
    return counts


def _stacked(columns: Sequence[Floats]) -> Floats:
    """Return (n, k), n the longest; zeros at the end of the others change no sum."""
    stacked = np.zeros((max(len(column) for column in columns), len(columns)))
    for index, column in enumerate(columns):
        stacked[: len(column), index] = column
    return stacked


def _random_halves(rows: int, seed: int, n_permutations: int) -> Iterator[Floats]:
    """Yield (rows, at most _BATCH) zeros and ones; the first rows are the same for any number of rows."""
    for start in range(0, n_permutations, _BATCH):
        drawn = np.random.default_rng([seed, 1, start]).bytes(rows * _BATCH // 8)
        bits = np.unpackbits(np.frombuffer(drawn, dtype=np.uint8).reshape(rows, _BATCH // 8), axis=1)
        yield bits[:, : n_permutations - start].astype(np.float64)
