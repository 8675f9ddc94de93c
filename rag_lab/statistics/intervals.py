"""Intervals of means and tests of paired differences; no input leads to a NaN.

Both depend on the values alone, not on their order, and swapping the two sides of a comparison mirrors it exactly.
Clusters, where given, name for each value the group of values that are not independent of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from rag_lab.statistics.bootstrap import bca_bounds, expanded_percentile_bounds
from rag_lab.statistics.randomization import N_PERMUTATIONS, sign_flip_p_values
from rag_lab.statistics.resampled_units import Units, units

TIE = 1e-12  # differences smaller than this are rounding
FEW_UNITS = 10  # values, or clusters of them: too few to resample, most resamples would repeat one or two

Floats = npt.NDArray[np.float64]
Sample = Sequence[float] | Floats
Clusters = Sequence[Sequence[Hashable]]
Bounds = tuple[float, float, bool]


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
    standard_error: float | None = None  # of the mean, robust to clusters; None with fewer than two of them
    n_units: int = 0  # clusters, or pairs where none were given
    n_apart: int = 0  # of these, with a difference that is not zero

    @property
    def effect_size(self) -> float | None:
        """Cohen's d_z (1988, section 2.3.5): mean / standard deviation of the differences; None without spread."""
        return self.mean / self.sd if self.mean is not None and self.sd else None


def mean_intervals(
    samples: Sequence[Sample], confidence: float = 0.95, seed: int = 0, clusters: Clusters | None = None
) -> list[Interval]:
    """Return the mean of each sample and its BCa bootstrap interval, in order; all samples share their resamples.

    With clusters the interval is the expanded percentile interval: there are few units then, and BCa does not allow for
    that (it covered 92% of 95% with 13 clusters, `benchmarks/calibration.py`). Below 10 values or clusters it is
    Student's: of five normal values BCa covered 88%, and of three 73%.

    Raises:
        ValueError: if a value is not finite, or `confidence` not between 0 and 1.
    """
    columns = [units(values, None if clusters is None else clusters[i]) for i, values in enumerate(samples)]
    distinct = _distinct(columns, confidence)
    found = _bounds(distinct, confidence, seed, _bca if clusters is None else _percentile)
    bounds = dict(zip([column.key for column in distinct], found, strict=True))
    return [_interval(column, bounds.get(column.key)) for column in columns]


def paired_differences(
    pairs: Sequence[tuple[Sample, Sample]],
    confidence: float = 0.95,
    seed: int = 0,
    n_permutations: int = N_PERMUTATIONS,
    clusters: Clusters | None = None,
) -> list[PairedDifference]:
    """Return the mean of a - b with its interval and p-value for each pair; all pairs share their resamples and flips.

    a[i] and b[i] belong to the same question. The interval is the expanded percentile interval (see
    `bootstrap.expanded_percentile_bounds`); with fewer than 10 pairs or clusters Student's.

    Raises:
        ValueError: if the lengths differ, or as `mean_intervals`.
    """
    values = [_difference(a, b) for a, b in pairs]
    columns = [units(column, None if clusters is None else clusters[i]) for i, column in enumerate(values)]
    flips = [_is_mirrored(column) for column in columns]
    canonical = [column.mirrored() if flip else column for column, flip in zip(columns, flips, strict=True)]
    distinct = _distinct(canonical, confidence)
    found = _bounds(distinct, confidence, seed, _percentile)
    bounds = dict(zip([column.key for column in distinct], found, strict=True))
    p_values = sign_flip_p_values([column.sums for column in canonical], seed, n_permutations)
    return [
        _paired(values[i], canonical[i], bounds.get(canonical[i].key), float(p_values[i]), flips[i])
        for i in range(len(pairs))
    ]


def _paired(values: Floats, column: Units, bounds: Bounds | None, p_value: float, flip: bool) -> PairedDifference:
    """Put the result for a canonical column together; `flip` tells that it is the mirror image of a - b."""
    found = _interval(column, bounds)
    mean, low, high = found.mean, found.low, found.high
    if flip:
        mean, low, high = _negative(mean), _negative(high), _negative(low)
    n, g, wins, losses = len(values), len(column.sums), int((values > 0).sum()), int((values < 0).sum())
    sd = float(np.std(np.sort(-values if flip else values), ddof=1)) if n > 1 else None
    p = p_value if n else None
    se = column.standard_error if n else None
    apart = int(np.count_nonzero(column.sums))
    return PairedDifference(mean, low, high, p, wins, n - wins - losses, losses, n, sd, found.reason, se, g, apart)


def _interval(column: Units, bounds: Bounds | None) -> Interval:
    n = int(column.counts.sum())
    if n == 0:
        return Interval(None, None, None, 0, "no value")
    if bounds is None:
        what = "one value" if n == 1 else f"one cluster of {n} values"
        return Interval(column.mean, None, None, n, f"{what} has no interval")
    low, high, is_bca = bounds
    averages = column.sums / column.counts
    if averages.max() - averages.min() <= TIE:
        what = f"all {n} values" if n == len(averages) else f"the means of all {len(averages)} clusters"
        return Interval(column.mean, column.mean, column.mean, n, f"{what} are equal, so the bootstrap sees no spread")
    return Interval(column.mean, low, high, n, "" if is_bca else "percentile interval, since BCa is undefined here")


def _distinct(columns: Sequence[Units], confidence: float) -> list[Units]:
    """Return the samples that have an interval, each content once, in an order of their own.

    Equal samples get equal results, and the last digit does not depend on the order of the samples either.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    found = {column.key: column for column in columns if len(column.sums) > 1}
    return [found[key] for key in sorted(found)]


def _bounds(columns: list[Units], confidence: float, seed: int, resampled: Callable[..., list[Bounds]]) -> list[Bounds]:
    """Return low, high, and whether the interval is the one that was meant, of each sample."""
    many = [column for column in columns if len(column.sums) >= FEW_UNITS]
    found = iter(resampled(many, confidence, seed) if many else [])
    return [next(found) if len(c.sums) >= FEW_UNITS else (*_student(c, confidence), True) for c in columns]


def _bca(columns: list[Units], confidence: float, seed: int) -> list[Bounds]:
    low, high, defined = bca_bounds(columns, confidence, seed)
    return list(zip(low.tolist(), high.tolist(), defined.tolist(), strict=True))


def _percentile(columns: list[Units], confidence: float, seed: int) -> list[Bounds]:
    low, high = expanded_percentile_bounds(columns, confidence, seed)
    return [(*ends, True) for ends in zip(low.tolist(), high.tolist(), strict=True)]


def _student(column: Units, confidence: float) -> tuple[float, float]:
    """Return Student's interval with (units - 1) degrees of freedom (for clusters Cameron et al. 2008, section IV)."""
    reach = float(stdtrit(len(column.sums) - 1, (1 + confidence) / 2)) * (column.standard_error or 0.0)
    return column.mean - reach, column.mean + reach


def _difference(a: Sample, b: Sample) -> Floats:
    if len(a) != len(b):
        raise ValueError(f"paired samples must have one length, got {len(a)} and {len(b)}")
    column = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    return np.where(np.abs(column) <= TIE, 0.0, column)


def _is_mirrored(column: Units) -> bool:
    """Tell whether the mirror image is the one to compute on, so that a swap of sides gives the mirrored result."""
    mirror = column.mirrored()
    return (tuple(mirror.sums), tuple(mirror.counts)) > (tuple(column.sums), tuple(column.counts))


def _negative(value: float | None) -> float | None:
    return None if value is None else 0.0 - value
