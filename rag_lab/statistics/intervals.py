"""Intervals of means and of paired differences, by bootstrap over values or clusters; no input leads to a NaN.

All depend on the values alone, not on their order, and swapping the two sides of a comparison mirrors its interval
exactly. Clusters name for each value the group of values that are not independent of each other: questions about one
document, or one question in several languages, say less than as many unrelated questions. They are drawn, and their
signs flipped, together (Cameron, Gelbach and Miller 2008, "Bootstrap-Based Improvements for Inference with Clustered
Errors", section II).

A resample draws each unit Poisson(1) times (the Poisson bootstrap: Hanley and MacGibbon 2006, "Creating non-parametric
bootstrap samples using Poisson frequencies"). It is the ordinary bootstrap but for the number of units drawn, which
varies about n; and since the draws of one unit do not depend on how many others there are, samples of all sizes share
one matrix of draws, so that a table of variants and metrics with scores missing here and there is one matrix product.

Scores of one run and another are mostly the same, and a change that strikes one question of a hundred with full force
may have struck none of those that were asked: the sample then has no spread, or too little, and an interval made of
nothing else is too narrow. So intervals are guarded: one unit that was not seen is appended at the end of the range of
the metric, and says what could have been missed.
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri, pdtr, stdtrit

_DIGITS = 12  # averages that agree to so many are equal but for rounding

Floats = npt.NDArray[np.float64]
N_RESAMPLES = 9_999
_BATCH = 303  # fixed, as the draws depend on it; a divisor of N_RESAMPLES
_KEPT_ROWS = 2_000  # means and differences of one run share their draws: 20 MB at the most are kept
_CELLS = 2**16  # of the unit interval
_UP_TO = pdtr(np.arange(256), 1.0)  # Poisson(1): the probability of so many or fewer
_COUNTS = np.searchsorted(_UP_TO, np.arange(_CELLS) / _CELLS, side="right").astype(np.uint8)  # where a cell begins
_SPLIT = np.isin(np.arange(_CELLS), np.floor(_UP_TO[_UP_TO < 1] * _CELLS))  # cells in which a count ends


@dataclass(frozen=True, slots=True)
class Units:
    """Sums and counts of the values of each unit, sorted, so that the order of the values does not matter."""

    sums: Floats  # (g,)
    counts: Floats  # (g,), at least 1 each

    @property
    def key(self) -> bytes:
        """The content, the same for the same values in any order."""
        return self.sums.tobytes() + self.counts.tobytes()

    @property
    def n(self) -> int:
        """Number of values, not of units."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """The mean of the values."""
        return math.fsum(self.sums) / math.fsum(self.counts)

    @property
    def n_uncommon(self) -> int:
        """Number of units that differ from the commonest one; all, where no two are equal."""
        _, how_often = np.unique(np.round(self.sums / self.counts, _DIGITS), return_counts=True)
        commonest = int(how_often.max(initial=1))
        return len(self.sums) - (commonest if commonest > 1 else 0)

    @property
    def standard_error(self) -> float | None:
        """The standard error of the mean, robust to dependence within units; None for a single unit.

        CR2 of Bell and McCaffrey (2002), "Bias Reduction in Standard Errors for Linear Regression with Multi-Stage
        Samples", of a model that has a mean and nothing else: the residuals of a unit with a share w of all values are
        divided by sqrt(1 - w), since a large unit draws the mean to itself. Of single values it is the usual one.
        """
        if len(self.sums) < 2:
            return None
        residuals = self.sums - self.mean * self.counts
        shares = self.counts / math.fsum(self.counts)
        return math.sqrt(math.fsum(residuals**2 / (1 - shares))) / math.fsum(self.counts)

    @property
    def degrees_of_freedom(self) -> float:
        """Satterthwaite's, of the variance of the mean; units - 1 for units of equal size, less for unequal ones.

        Bell and McCaffrey (2002), as Pustejovsky and Tipton (2018), "Small-Sample Methods for Cluster-Robust Variance
        Estimation", equation 11, with independent values as the working model. Needs 2 units.
        """
        shares = self.counts / math.fsum(self.counts)
        squares = shares**2
        leverage = squares / (1 - shares)
        return 1 / math.fsum([*squares, math.fsum(leverage) ** 2, *-(leverage**2)])

    def with_one_more(self, value: float) -> "Units":
        """Return these units and one more of which each value is `value`.

        Its size is the quadratic mean of the others', by which a unit weighs in a variance: with the plain mean an
        interval misses clusters that are lost as a whole where few are large.
        """
        size = math.sqrt(math.fsum(self.counts**2) / len(self.counts))
        return _sorted(np.append(self.sums, value * size), np.append(self.counts, size))


def units(values: Sequence[float] | Floats, clusters: Sequence[Hashable] | None = None) -> Units:
    """Return each value as a unit, or the values of each cluster together."""
    column = np.asarray(values, dtype=np.float64)
    if not np.isfinite(column).all():
        raise ValueError("values must be finite numbers; leave out what was not scored")
    if clusters is None:
        return Units(np.sort(column) + 0.0, np.ones(len(column)))
    if len(clusters) != len(column):
        raise ValueError(f"each value needs one cluster, got {len(column)} values and {len(clusters)} clusters")
    members: dict[Hashable, list[float]] = {}
    for value, cluster in zip(column.tolist(), clusters, strict=True):
        members.setdefault(cluster, []).append(value)
    sums = np.array([math.fsum(group) for group in members.values()], dtype=np.float64)
    return _sorted(sums, np.array([len(group) for group in members.values()], dtype=np.float64))


def _sorted(sums: Floats, counts: Floats) -> Units:
    order = np.lexsort((counts, sums))
    return Units(sums[order] + 0.0, counts[order])


def bca_bounds(columns: Sequence[Units], confidence: float, seed: int) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """Return the lower and upper BCa bounds of the mean of each column of at least 2 units, and where they are BCa.

    Efron (1987), "Better Bootstrap Confidence Intervals", equations 2.3 and 6.6, for means of skewed scores. Three (k,)
    arrays. A column where BCa is undefined (no spread, or every resampled mean on one side) gets the percentile
    interval and False.
    """
    means = np.array([column.mean for column in columns])
    resampled = resampled_means(columns, seed)
    tail = (1 - confidence) / 2
    z = np.array([[ndtri(tail)], [ndtri(1 - tail)]])
    with np.errstate(all="ignore"):  # undefined columns are told apart below
        slack = 1e-12 * np.maximum(1, np.abs(means))  # a resampled mean equal to the mean counts half on either side
        below = (resampled < (means - slack)[:, None]).mean(axis=1)
        above = (resampled > (means + slack)[:, None]).mean(axis=1)
        bias = ndtri((1 + below - above) / 2)
        # For a mean, the jackknife's skewness is that of the units' deviations.
        deviations = [column.sums - column.mean * column.counts for column in columns]
        cubes = np.array([(deviation**3).sum() for deviation in deviations])
        squares = np.array([(deviation**2).sum() for deviation in deviations])
        levels = ndtr(bias + (bias + z) / (1 - cubes / (6 * squares**1.5) * (bias + z)))
    defined = np.isfinite(levels).all(axis=0) & (levels[0] < levels[1])
    low, high = _quantiles(resampled, np.where(defined, levels, [[tail], [1 - tail]]))
    return low, high, defined


def expanded_percentile_bounds(columns: Sequence[Units], confidence: float, seed: int) -> tuple[Floats, Floats]:
    """Return the bounds of the expanded percentile interval of the mean of each column, for paired differences.

    Hesterberg (2015), "What Teachers Should Know About the Bootstrap", section 5.3: percentiles at the levels that make
    the interval as wide as Student's t with the degrees of freedom of the units (n - 1; for clusters see `Units`).
    Differences of paired scores are mostly ties; BCa reads a skewness off the few others that is chance, and covered
    92% to 93% of 95% where this covers 94% to 96% (`benchmarks/interval_coverage.py`). Of Hesterberg's two factors,
    n / (n - 1) is there already: it is the variance of the number of units drawn.
    """
    freedom = np.array([column.degrees_of_freedom for column in columns])
    tails = ndtr(stdtrit(freedom, (1 - confidence) / 2))
    return _quantiles(resampled_means(columns, seed), np.stack([tails, 1 - tails]))


def resampled_means(columns: Sequence[Units], seed: int) -> Floats:
    """Return (k, N_RESAMPLES) means; a resample that drew nothing (of very few units) counts as the sample itself."""
    rows = max(len(column.sums) for column in columns)
    sums, counts = np.zeros((rows, len(columns))), np.zeros((rows, len(columns)))  # shorter columns end in zeros
    for index, column in enumerate(columns):
        sums[: len(column.sums), index] = column.sums
        counts[: len(column.counts), index] = column.counts
    sizes, which = np.unique(counts, axis=1, return_inverse=True)
    stacked = np.hstack([sums, sizes]).T.copy()
    means = (sums.sum(axis=0) / counts.sum(axis=0))[:, None]
    resampled = np.empty((len(columns), N_RESAMPLES))
    for batch, draws in enumerate(poisson_draws(len(sums), seed, 0, N_RESAMPLES // _BATCH, _BATCH)):
        drawn = stacked @ draws
        totals = drawn[len(columns) :]
        if totals.shape[0] > 1:
            totals = totals[which.reshape(-1)]
        part = resampled[:, batch * _BATCH : (batch + 1) * _BATCH]
        np.divide(drawn[: len(columns)], np.where(totals > 0, totals, 1.0), out=part)
        if not totals.all():
            part[:] = np.where(totals > 0, part, means)
    return resampled


def poisson_draws(rows: int, seed: int, stream: int, n_batches: int, size: int) -> Iterator[Floats]:
    """Yield `n_batches` times (rows, size) counts; the first rows are the same for any number of rows.

    `stream` separates the draws of methods that share a seed; the draws depend on `size`, too.
    """
    drawn = _kept if rows <= _KEPT_ROWS else _drawn
    for batch in range(n_batches):
        yield drawn(rows, seed, stream, batch, size).astype(np.float64)


def draw_ahead(rows: int, seed: int = 0) -> None:
    """Draw what means of so many units need, so that processes forked from this one find it drawn."""
    if rows <= _KEPT_ROWS:
        for batch in range(N_RESAMPLES // _BATCH):
            _kept(rows, seed, 0, batch, _BATCH)


def _drawn(rows: int, seed: int, stream: int, batch: int, size: int) -> npt.NDArray[np.uint8]:
    """Draw by inversion, exactly, from cells of the unit interval; the few that are split are looked into."""
    cells = np.random.default_rng([seed, stream, batch]).integers(0, _CELLS, (rows, size), dtype=np.uint16)
    counts: npt.NDArray[np.uint8] = _COUNTS[cells]
    split = np.flatnonzero(_SPLIT[cells])
    within = np.random.default_rng([seed, stream, batch, 1]).random(len(split))
    counts.flat[split] = np.searchsorted(_UP_TO, (cells.flat[split] + within) / _CELLS, side="right")
    return counts


_kept = lru_cache(N_RESAMPLES // _BATCH)(_drawn)


def _quantiles(resampled: Floats, levels: Floats) -> tuple[Floats, Floats]:
    """Return the two quantiles of each row at its two levels, (2, k); the rows are sorted in place."""
    resampled.sort(axis=1)
    place = levels * (N_RESAMPLES - 1)
    below = np.clip(np.floor(place).astype(int), 0, N_RESAMPLES - 2)
    rows = np.arange(len(resampled))
    here, above = resampled[rows, below], resampled[rows, below + 1]
    bounds = here + (place - below) * (above - here)
    return bounds[0], bounds[1]


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
    """A mean with its interval, or None and the reason; that also says that values are equal, or no BCa interval is."""

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
        """Cohen's d_z (1988, section 2.3.5): mean / standard deviation of the differences; None without spread."""
        if self.mean is None or self.sd is None or self.sd <= 1e-9 * abs(self.mean):  # rounding
            return None
        return self.mean / self.sd


def mean_intervals(
    samples: Sequence[Sample],
    confidence: float = 0.95,
    seed: int = 0,
    clusters: Clusters | None = None,
    ranges: Sequence[Ends] | None = None,
) -> list[Interval]:
    """Return the mean and its interval (see `usual_bounds`) for each sample; all share their resamples.

    Where fewer than 30 units differ from the commonest, the ends reach at least the guarded bounds. `ranges` are the
    lowest and the highest value of the metric of each sample: where one is None that end is not guarded, and equal
    values have no interval.
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

    a[i] and b[i] belong to the same question. Of the interval (see `usual_bounds`) the ends reach at least the guarded
    bounds where fewer than 30 units differ. `reach` is how far apart a and b can be on one question;
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
        mirror = _sorted(0.0 - column.sums, column.counts)
        # The lesser of both is computed on, so that a swap of sides gives the mirrored result.
        flips.append((tuple(mirror.sums), tuple(mirror.counts)) > (tuple(column.sums), tuple(column.counts)))
        canonical.append(mirror if flips[-1] else column)
    found = usual_bounds(canonical, confidence, seed, is_bca=False)
    known = [None] * len(pairs) if reach is None else reach
    furthest = [max(float(np.abs(v).max(initial=0)), r or 0.0) for v, r in zip(values, known, strict=True)]
    results = []
    for v, column, flip, most, r in zip(values, canonical, flips, furthest, known, strict=True):
        differing, ends = int(np.count_nonzero(column.sums)), (-most, most) if most else (None, None)
        one = _interval(column, found.get(column.key), ends, differing, confidence)
        mean, low, high = one.mean, one.low, one.high
        if r and low is not None and high is not None:
            low, high = max(low, -most), min(high, most)
        if flip:
            mean, low, high = (None if end is None else 0.0 - end for end in (mean, high, low))
        n, wins, losses = len(v), int((v > 0).sum()), int((v < 0).sum())
        sd = float(np.std(np.sort(-v if flip else v), ddof=1)) if n > 1 else None
        spread = (sd, one.reason, column.standard_error if n else None, len(column.sums), differing)
        results.append(PairedDifference(mean, low, high, wins, n - wins - losses, losses, n, *spread))
    return results


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
