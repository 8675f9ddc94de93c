"""A bound of a mean that holds at all looks at once, so that one may stop as soon as it tells enough.

Against the claim that a mean is at most m, a gambler stakes a part of what they have on each value before it is seen.
If the claim is true, what they have is not expected to grow: that it ever grows to 1 / error has a chance of `error` at
most (Ville's inequality), however often one looks. The bound is the largest m that was refuted so. Source:
Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting", section 4; here stakes are
sized for the looks that are planned, and what the gambler has is the mean over these sizes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_MOST_STAKED = 0.75  # of what the gambler has
_VARIANCE = 1 / 16  # of the first value, before anything is seen
_HALVINGS = 40

Floats = npt.NDArray[np.float64]


def lower_bound(values: Sequence[float] | Floats, reach: float, error: float, looks: Sequence[int]) -> float:
    """Return what the mean is above, with all bounds at earlier looks: `-reach` where nothing can be told.

    Args:
        values: (n,) independent values, in the order in which they came, none further from zero than `reach`.
        reach: above 0.
        error: the chance that any bound, at any look, is above the mean.
        looks: after how many values one means to look; that one looks at other times, too, does no harm.

    Raises:
        ValueError: if a value is further from zero than `reach`, or not finite.
    """
    shares = _shares(values, reach)
    sizes = _sizes(shares, error, looks)
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _is_refuted(shares, sizes, middle, error) else (low, middle)
    return float((2 * low - 1) * reach)


def is_above(values: Sequence[float] | Floats, mean: float, reach: float, error: float, looks: Sequence[int]) -> bool:
    """Tell whether the bound is above `mean`, which is quicker than to ask for the bound; see `lower_bound`."""
    shares = _shares(values, reach)
    return _is_refuted(shares, _sizes(shares, error, looks), (mean / reach + 1) / 2, error)


def _shares(values: Sequence[float] | Floats, reach: float) -> Floats:
    """Return the values as shares of their range."""
    found = np.asarray(values, dtype=np.float64)
    if not (np.abs(found) <= reach * (1 + 1e-9)).all():
        raise ValueError(f"values must be finite and between {-reach} and {reach}")
    return np.clip((found / reach + 1) / 2, 0, 1)


def _sizes(shares: Floats, error: float, looks: Sequence[int]) -> Floats:
    """Return (looks, n): how much is staked on each value, which depends on those before it alone."""
    n = np.arange(1, len(shares) + 1)
    means = (0.5 + np.cumsum(shares)) / (n + 1)
    variances = (_VARIANCE + np.cumsum((shares - means) ** 2)) / (n + 1)
    before = np.concatenate([[_VARIANCE], variances[:-1]])[: len(shares)]
    sizes: Floats = np.sqrt(2 * np.log(1 / error) / (before * np.asarray(looks, dtype=np.float64)[:, None]))
    return sizes


def _is_refuted(shares: Floats, sizes: Floats, mean: float, error: float) -> bool:
    """Tell whether the claim that the mean of the shares is at most `mean` was ever refuted."""
    won = np.log1p(np.minimum(sizes, _MOST_STAKED / mean) * (shares - mean)).cumsum(axis=1)
    return bool(np.logaddexp.reduce(won, axis=0).max(initial=-np.inf) - np.log(len(sizes)) >= np.log(1 / error))
