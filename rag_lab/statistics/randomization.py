"""The paired randomization test: under the null hypothesis, the sign of every difference is a coin flip.

Fisher (1935), "The Design of Experiments", section 21; Smucker, Allan and Carterette (2007) recommend it for comparing
retrieval runs. It assumes nothing about the shape of the differences.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import numpy.typing as npt

EXACT_UP_TO = 12
N_PERMUTATIONS = 10_000
_BATCH_NUMBERS = 2_000_000  # signs held in memory at once

Floats = npt.NDArray[np.float64]


def sign_flip_p_values(differences: Floats, seed: int, n_permutations: int = N_PERMUTATIONS) -> Floats:
    """Return the two-sided p-value of the mean of each column being zero.

    Exact by enumeration up to 12 rows, else (b + 1) / (m + 1) over m random flips. The order of the rows matters to the
    random flips only; sort the columns by magnitude, if the result is not to depend on it.

    Args:
        differences: (n, k), n >= 1.
        seed: of the random flips.
        n_permutations: m.

    Returns:
        (k,) p-values.
    """
    magnitudes = np.abs(differences)
    # Sums that differ by rounding alone are equal: without the slack, ties would be decided by noise.
    threshold = np.abs(differences.sum(axis=0)) - 1e-9 * magnitudes.sum(axis=0)
    n = len(differences)
    if n <= EXACT_UP_TO:
        return _share(_all_signs(n), magnitudes, threshold)
    extreme = sum(
        (np.abs(signs @ magnitudes) >= threshold).sum(axis=0) for signs in _random_signs(n, seed, n_permutations)
    )
    result: Floats = (extreme + 1) / (n_permutations + 1)
    return result


def smallest_n(alpha: float) -> int:
    """Return how many pairs the exact test needs before its p-value can fall below `alpha`."""
    return int(np.floor(np.log2(2 / alpha))) + 1


def _share(signs: Floats, magnitudes: Floats, threshold: Floats) -> Floats:
    result: Floats = (np.abs(signs @ magnitudes) >= threshold).mean(axis=0)
    return result


def _all_signs(n: int) -> Floats:
    """Return (2**(n-1), n) signs; the other half are their mirror images and just as extreme."""
    return np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=n - 1)])


def _random_signs(n: int, seed: int, n_permutations: int) -> Iterator[Floats]:
    generator = np.random.default_rng(seed)
    batch = max(1, _BATCH_NUMBERS // n)
    for start in range(0, n_permutations, batch):
        rows = min(batch, n_permutations - start)
        yield generator.choice(np.array([-1.0, 1.0]), (rows, n))
