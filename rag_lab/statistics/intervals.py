"""Intervals of means and of paired differences; no input leads to a NaN.

Both depend on the values alone, not on their order, and swapping the two sides of a comparison mirrors it exactly.
Clusters name for each value the group of values that are not independent of each other.

Scores of one run and another are mostly the same, and a change that strikes one question of a hundred with full force
may have struck none of those that were asked: the sample then has no spread, or too little, and an interval made of
nothing else is too narrow. So intervals are guarded: one unit that was not seen is appended at the end of the range of
the metric, and says what could have been missed.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from rag_lab.statistics.bootstrap import Floats, Units, bca_bounds, expanded_percentile_bounds, units

FEW_VALUES, FEW_CLUSTERS = 10, 8  # with fewer, most resamples would repeat one or two
ENOUGH_DIFFERING = 30  # units that differ: with fewer, what was not seen may outweigh what was

Bounds = tuple[float, float, bool]
TIE = 1e-12  # differences smaller than this are rounding

Sample = Sequence[float] | Floats
Clusters = Sequence[Sequence[Hashable]]
Ends = tuple[float | None, float | None]  # the lowest and the highest value that there can be, None where not known


def usual_bounds(columns: Sequence[Units], confidence: float, seed: int, is_bca: bool) -> dict[bytes, Bounds]:
    """Return low, high, and whether the method is the intended one, by the key of each column of two units or more.

    Student's intervals have columns of fewer than 10 values or 8 clusters, the others BCa ones (where they are
    undefined percentile intervals, and False) or the expanded percentile intervals. Each content is computed once, in
    the order of the keys: equal columns get equal results, and the last digit does not depend on their order.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    distinct = {column.key: column for column in columns if len(column.sums) > 1}
    found: dict[bytes, Bounds] = {}
    for key, column in distinct.items():
        if len(column.sums) < (FEW_VALUES if len(column.sums) == column.n else FEW_CLUSTERS):
            found[key] = (*student_bounds(column, confidence), True)
    many = {key: distinct[key] for key in sorted(distinct.keys() - found.keys())}
    if many and is_bca:
        low, high, defined = bca_bounds(list(many.values()), confidence, seed)
        found |= zip(many, zip(low.tolist(), high.tolist(), defined.tolist(), strict=True), strict=True)
    elif many:
        low, high = expanded_percentile_bounds(list(many.values()), confidence, seed)
        found |= zip(many, zip(low.tolist(), high.tolist(), [True] * len(many), strict=True), strict=True)
    return found


def student_bounds(column: Units, confidence: float) -> tuple[float, float]:
    """Return Student's interval of 2 units or more, with the error and degrees of freedom that `Units` defines."""
    reach = float(stdtrit(column.degrees_of_freedom, (1 + confidence) / 2)) * (column.standard_error or 0.0)
    return column.mean - reach, column.mean + reach


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its interval; None without values, or where there is no interval.

    `reason` then says why, and also where the interval is not BCa or all values are equal.
    """

    mean: float | None
    low: float | None
    high: float | None
    n: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The mean of a - b over pairs and its interval; None as in `Interval`."""

    mean: float | None
    low: float | None
    high: float | None
    wins: int  # pairs with a > b
    ties: int
    losses: int
    n: int
    sd: float | None = None  # standard deviation of a - b; None where n < 2
    reason: str = ""
    standard_error: float | None = None  # of the mean, robust to clusters; None with fewer than two of them
    n_units: int = 0  # clusters, or pairs where none were given
    n_differing: int = 0  # of these, with a difference that is not zero

    @property
    def effect_size(self) -> float | None:
        """Cohen's d_z (1988, section 2.3.5): mean / standard deviation of the differences; None without spread.

        A spread of less than a billionth of the mean is that of rounding.
        """
        if self.mean is None or self.sd is None or self.sd <= 1e-9 * abs(self.mean):
            return None
        return self.mean / self.sd


def mean_intervals(
    samples: Sequence[Sample],
    confidence: float = 0.95,
    seed: int = 0,
    clusters: Clusters | None = None,
    ranges: Sequence[Ends] | None = None,
) -> list[Interval]:
    """Return the mean and its interval for each sample; all share their resamples.

    BCa intervals (see `bootstrap.bca_bounds`); of clusters the expanded percentile interval, and Student's of fewer
    than 10 values or 8 clusters. Where fewer than 30 differ from the commonest, the ends reach at least the guarded
    bounds. `ranges` are the lowest and the highest value that the metric of each sample can take: where one is None
    that end is not guarded, and equal values have no interval.
    """
    columns = [units(values, None if clusters is None else clusters[i]) for i, values in enumerate(samples)]
    found = usual_bounds(columns, confidence, seed, is_bca=clusters is None)
    known = [(None, None)] * len(columns) if ranges is None else ranges
    return [
        _interval(column, found.get(column.key), ends, column.n_uncommon, confidence)
        for column, ends in zip(columns, known, strict=True)
    ]


def paired_differences(
    pairs: Sequence[tuple[Sample, Sample]],
    confidence: float = 0.95,
    seed: int = 0,
    clusters: Clusters | None = None,
    reach: Sequence[float | None] | None = None,
) -> list[PairedDifference]:
    """Return the mean of a - b with its interval for each pair; all pairs share their resamples.

    a[i] and b[i] belong to the same question. The interval is the expanded percentile interval (see
    `bootstrap.expanded_percentile_bounds`), Student's with fewer than 10 pairs or 8 clusters; where fewer than 30 of
    these differ, its ends reach at least the guarded bounds. `reach` is how far apart a and b can be on one question;
    without one the largest difference that was seen is taken for it, and where all are equal there is no interval.
    """
    values: list[Floats] = []
    canonical, flips = [], []
    for i, (a, b) in enumerate(pairs):
        if len(a) != len(b):
            raise ValueError(f"paired samples must have one length, got {len(a)} and {len(b)}")
        differences = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
        values.append(np.where(np.abs(differences) <= TIE, 0.0, differences))
        column = units(values[-1], None if clusters is None else clusters[i])
        mirror = column.mirrored()
        # The lesser of both is computed on, so that a swap of sides gives the mirrored result.
        flips.append((tuple(mirror.sums), tuple(mirror.counts)) > (tuple(column.sums), tuple(column.counts)))
        canonical.append(mirror if flips[-1] else column)
    found = usual_bounds(canonical, confidence, seed, is_bca=False)
    known = [None] * len(pairs) if reach is None else reach
    furthest = [max(float(np.abs(v).max(initial=0)), r or 0.0) for v, r in zip(values, known, strict=True)]
    intervals = [
        _interval(column, found.get(column.key), ends, int(np.count_nonzero(column.sums)), confidence)
        for column, ends in zip(canonical, [(-most, most) if most else (None, None) for most in furthest], strict=True)
    ]
    return [
        _paired(values[i], canonical[i], found, flips[i], furthest[i] if known[i] else None)
        for i, found in enumerate(intervals)
    ]


def _paired(values: Floats, column: Units, found: Interval, flip: bool, most: float | None) -> PairedDifference:
    """Return the result for a canonical column, the mirror image of a - b where `flip`; none differ by above `most`."""
    mean, low, high = found.mean, found.low, found.high
    if most is not None and low is not None and high is not None:
        low, high = max(low, -most), min(high, most)
    if flip:
        mean, low, high = (None if one is None else 0.0 - one for one in (mean, high, low))
    n, g, wins, losses = len(values), len(column.sums), int((values > 0).sum()), int((values < 0).sum())
    sd = float(np.std(np.sort(-values if flip else values), ddof=1)) if n > 1 else None
    se = column.standard_error if n else None
    differing = int(np.count_nonzero(column.sums))
    return PairedDifference(mean, low, high, wins, n - wins - losses, losses, n, sd, found.reason, se, g, differing)


def _interval(column: Units, bounds: Bounds | None, ends: Ends, n_differing: int, confidence: float) -> Interval:
    n, g = column.n, len(column.sums)
    if n == 0:
        return Interval(None, None, None, 0, "no value")
    if bounds is None:
        what = "one value" if n == 1 else f"one cluster of {n} values"
        return Interval(column.mean, None, None, n, f"{what} has no interval")
    low, high, is_meant = bounds
    reason = "" if is_meant else "percentile interval, since BCa is undefined here"
    is_flat = np.ptp(column.sums / column.counts) <= TIE
    if is_flat:
        what = f"all {n} values are" if n == g else f"the means of all {g} clusters are"
        if None in ends:
            return Interval(column.mean, None, None, n, f"{what} equal, and the range of the metric is not known")
        reason = f"{what} equal; the interval says what {n if n == g else g} could have missed"
    if is_flat or n_differing < ENOUGH_DIFFERING:
        # Student's interval with one more unit at either end of the range; one that is not known guards nothing.
        lowest, highest = (None if end is None else column.with_one_more(end) for end in ends)
        low = min(low, column.mean if lowest is None else student_bounds(lowest, confidence)[0])
        high = max(high, column.mean if highest is None else student_bounds(highest, confidence)[1])
    return Interval(column.mean, low, high, n, reason)
