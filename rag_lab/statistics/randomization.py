"""The paired randomization test: under the null hypothesis, the sign of every difference is a coin flip.

Fisher (1935), "The Design of Experiments", section 21; Smucker, Allan and Carterette (2007) recommend it for comparing
retrieval runs. It assumes nothing about the shape of the differences. Clusters of questions flip together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

EXACT_UP_TO = 12
N_PERMUTATIONS = 10_000
_BATCH = 1_000  # flips held in memory at once; fixed, as the flips depend on it

Floats = npt.NDArray[np.float64]


def sign_flip_p_values(columns: Sequence[Floats], seed: int, n_permutations: int = N_PERMUTATIONS) -> Floats:
    """Return the two-sided p-value of the mean of each column being zero.

    Exact by enumeration up to 12 differences that are not zero (a zero has no sign), else (b + 1) / (m + 1) over m
    random flips. Neither the order within a column nor the other columns matter.

    Args:
        columns: k samples of differences (or of cluster sums), of any lengths.
        seed: of the random flips.
        n_permutations: m.

    Returns:
        (k,) p-values; 1 for a column without any difference.
    """
    magnitudes = [np.sort(np.abs(column[column != 0])) for column in columns]
    # Sums that differ by rounding alone are equal: without the slack, ties would be decided by noise.
    thresholds = np.array([abs(column.sum()) - 1e-9 * np.abs(column).sum() for column in columns])
    result = np.ones(len(columns))
    few = [index for index, column in enumerate(magnitudes) if len(column) <= EXACT_UP_TO]
    many = [index for index, column in enumerate(magnitudes) if len(column) > EXACT_UP_TO]
    for index in few:
        result[index] = _exact(magnitudes[index], thresholds[index])
    if many:
        stacked = _stacked([magnitudes[index] for index in many])
        extreme = sum(
            (np.abs(signs.T @ stacked) >= thresholds[many]).sum(axis=0)
            for signs in _random_signs(len(stacked), seed, n_permutations)
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
    signs = np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=len(magnitudes) - 1)])
    return float((np.abs(signs @ magnitudes) >= threshold).mean())


def _stacked(columns: Sequence[Floats]) -> Floats:
    """Return (n, k), n the longest; zeros at the end of the others change no sum."""
    stacked = np.zeros((max(len(column) for column in columns), len(columns)))
    for index, column in enumerate(columns):
        stacked[: len(column), index] = column
    return stacked


def _random_signs(rows: int, seed: int, n_permutations: int) -> Iterator[Floats]:
    """Yield (rows, at most _BATCH) signs; the first rows are the same for any number of rows."""
    for start in range(0, n_permutations, _BATCH):
        generator = np.random.default_rng([seed, 1, start])
        signs = generator.integers(0, 2, (rows, _BATCH), dtype=np.int8)[:, : n_permutations - start]
        yield signs.astype(np.float64) * 2 - 1
