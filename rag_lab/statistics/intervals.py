"""Intervals of means and tests of paired differences; no input leads to a NaN.

Both depend on the values alone, not on their order, and swapping the two sides of a comparison mirrors it exactly.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_lab.statistics.bootstrap import bca_bounds
from rag_lab.statistics.randomization import N_PERMUTATIONS, sign_flip_p_values

TIE = 1e-12  # differences smaller than this are rounding

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its bootstrap interval.

    `mean` is None without values, `low` and `high` where no interval can be told; `reason` then says why, and also
    where the interval is not BCa.
    """

    mean: float | None
    low: float | None
    high: float | None
    n: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The mean of a - b over pairs, its interval, and the p-value of the sign-flip test; None as in `Interval`."""

    mean: float | None
    low: float | None
    high: float | None
    p_value: float | None
    wins: int  # pairs with a > b
    ties: int
    losses: int
    n: int
    sd: float | None = None  # standard deviation of a - b; None where n < 2
    reason: str = ""


def mean_interval(values: Sequence[float], confidence: float = 0.95, seed: int = 0) -> Interval:
    """Return the mean of `values` and its BCa bootstrap interval.

    Raises:
        ValueError: if a value is not finite, or `confidence` not between 0 and 1.
    """
    return mean_intervals([values], confidence, seed)[0]


def mean_intervals(
    samples: Sequence[Sequence[float] | Floats], confidence: float = 0.95, seed: int = 0
) -> list[Interval]:
    """Return `mean_interval` of each sample, in order; samples of one size share their resamples."""
    columns = [_finite(values) for values in samples]
    results: dict[int, Interval] = {}
    for members in _by_size(columns):
        found = _intervals([columns[index] for index in members], confidence, seed)
        results.update(zip(members, found, strict=True))
    return [results[index] for index in range(len(columns))]


def paired_difference(
    a: Sequence[float], b: Sequence[float], confidence: float = 0.95, seed: int = 0
) -> PairedDifference:
    """Return the mean of a - b with its interval and p-value; a[i] and b[i] belong to the same question.

    Raises:
        ValueError: if the lengths differ, or as `mean_interval`.
    """
    return paired_differences([(a, b)], confidence, seed)[0]


def paired_differences(
    pairs: Sequence[tuple[Sequence[float], Sequence[float]]],
    confidence: float = 0.95,
    seed: int = 0,
    n_permutations: int = N_PERMUTATIONS,
) -> list[PairedDifference]:
    """Return `paired_difference` of each pair of samples, in order; pairs of one size share their resamples."""
    columns = [_difference(a, b) for a, b in pairs]
    flips = [_is_mirrored(column) for column in columns]
    canonical = [np.sort(-column) if flip else column for column, flip in zip(columns, flips, strict=True)]
    intervals = mean_intervals(canonical, confidence, seed)
    p_values = _p_values(canonical, seed, n_permutations)
    return [
        _paired(column, interval, p_value, flip)
        for column, interval, p_value, flip in zip(canonical, intervals, p_values, flips, strict=True)
    ]


def _paired(column: Floats, interval: Interval, p_value: float | None, flip: bool) -> PairedDifference:
    """Put the result for a canonical column together; `flip` tells that it is the mirror image of a - b."""
    mean, low, high = interval.mean, interval.low, interval.high
    wins, losses = int((column > 0).sum()), int((column < 0).sum())
    if flip:
        mean, low, high = _negative(mean), _negative(high), _negative(low)
        wins, losses = losses, wins
    n = len(column)
    sd = float(np.std(column, ddof=1)) if n > 1 else None
    return PairedDifference(mean, low, high, p_value, wins, n - wins - losses, losses, n, sd, interval.reason)


def _intervals(columns: list[Floats], confidence: float, seed: int) -> list[Interval]:
    """Return the intervals of columns of one size."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    n = len(columns[0])
    if n == 0:
        return [Interval(None, None, None, 0, "no value")] * len(columns)
    means = [math.fsum(column) / n for column in columns]
    if n == 1:
        return [Interval(mean, None, None, 1, "one value has no interval") for mean in means]
    lows, highs, defined = bca_bounds(np.column_stack(columns), confidence, seed)
    return [
        _interval(column, mean, float(low), float(high), bool(is_bca))
        for column, mean, low, high, is_bca in zip(columns, means, lows, highs, defined, strict=True)
    ]


def _interval(column: Floats, mean: float, low: float, high: float, is_bca: bool) -> Interval:
    n = len(column)
    if column[-1] - column[0] <= TIE:
        return Interval(mean, mean, mean, n, f"all {n} values are equal, so the bootstrap sees no spread")
    return Interval(mean, low, high, n, "" if is_bca else "percentile interval, since BCa is undefined here")


def _p_values(columns: list[Floats], seed: int, n_permutations: int) -> list[float | None]:
    results: list[float | None] = [None] * len(columns)
    for members in _by_size(columns):
        if len(columns[members[0]]) == 0:
            continue
        by_magnitude = [columns[index][np.argsort(np.abs(columns[index]), kind="stable")] for index in members]
        found = sign_flip_p_values(np.column_stack(by_magnitude), seed, n_permutations)
        for index, p_value in zip(members, found, strict=True):
            results[index] = float(p_value)
    return results


def _finite(values: Sequence[float] | Floats) -> Floats:
    """Return `values` sorted."""
    column = np.sort(np.asarray(values, dtype=np.float64))
    if not np.isfinite(column).all():
        raise ValueError("values must be finite numbers; leave out what was not scored")
    return column


def _difference(a: Sequence[float], b: Sequence[float]) -> Floats:
    if len(a) != len(b):
        raise ValueError(f"paired samples must have one length, got {len(a)} and {len(b)}")
    column = _finite(np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64))
    return np.where(np.abs(column) <= TIE, 0.0, column)


def _is_mirrored(column: Floats) -> bool:
    """Tell whether the mirror image is the one to compute on, so that a swap of sides gives the mirrored result."""
    return bool(tuple(np.sort(-column)) > tuple(column))


def _by_size(columns: Sequence[Floats]) -> list[list[int]]:
    groups: dict[int, list[int]] = defaultdict(list)
    for index, column in enumerate(columns):
        groups[len(column)].append(index)
    return list(groups.values())


def _negative(value: float | None) -> float | None:
    return None if value is None else 0.0 - value
