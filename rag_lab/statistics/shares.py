"""Shares: of a reachable gain, of pairs that scores order rightly (the area under the ROC), and of agreement.

The gain's is a ratio of two paired means, with Fieller's interval. The area is the probability that a right answer
scores higher than a wrong one, ties counted half (Mann and Whitney 1947). Answers to one question belong together, so
what counts as an observation is a question and not an answer.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from scipy.special import ndtri, stdtrit

from rag_lab.statistics.intervals import FEW_CLUSTERS, FEW_VALUES, Interval, units

_BESIDE = 1e-9

# The scores of one question's right answers, and of its wrong ones; either may be empty.
Cluster = tuple[Sequence[float], Sequence[float]]


def gain_share(
    values: Sequence[float],
    floors: Sequence[float],
    ceilings: Sequence[float],
    *,
    sign: int = 1,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> Interval:
    """Return mean(value - floor) / mean(ceiling - floor) over n questions; `sign` is -1 where less is better.

    Below 0 the value is worse than the floor, above 1 it is better than the ceiling.

    The interval holds the ratios that Student's test of mean(value - floor - ratio * (ceiling - floor)) does not reject
    (Fieller 1954, "Some Problems in Interval Estimation"), with variances that are robust to clusters. So there is one
    only where the gain itself differs from zero, and where it lies on the better side.
    """
    value, floor, ceiling = (np.asarray(column, dtype=np.float64) for column in (values, floors, ceilings))
    if not len(value) == len(floor) == len(ceiling):
        raise ValueError(f"paired samples must have one length, got {len(value)}, {len(floor)} and {len(ceiling)}")
    n = len(value)
    if n == 0:
        return Interval(None, None, None, 0, "no question has all three scores")
    reached, gain = sign * (value - floor), sign * (ceiling - floor)
    ours, theirs, both = (units(column, clusters) for column in (reached, gain, reached + gain))
    if theirs.mean <= 0:
        return Interval(None, None, None, n, "there is no gain: the ceiling is not above the floor")
    if len(theirs.sums) < (FEW_VALUES if clusters is None else FEW_CLUSTERS):
        return Interval(None, None, None, n, "too few questions to tell a share")
    share, mean = ours.mean / theirs.mean, theirs.mean
    t = float(stdtrit(theirs.degrees_of_freedom, (1 + confidence) / 2))
    error, error_of_gain, together = (one.standard_error or 0.0 for one in (ours, theirs, both))
    shared = (together**2 - error**2 - error_of_gain**2) / 2  # the covariance of the two means
    doubt = (t * error_of_gain / mean) ** 2  # 1 where the test of the gain is at the edge
    if doubt >= 1:  # so that no ratio is rejected
        return Interval(None, None, None, n, "the gain cannot be told from chance")
    tilt = t**2 * shared / mean**2
    inside = (share - tilt) ** 2 - (1 - doubt) * (share**2 - (t * error / mean) ** 2)
    half = math.sqrt(max(0.0, inside))
    return Interval(share, (share - tilt - half) / (1 - doubt), (share - tilt + half) / (1 - doubt), n)


def auc_interval(clusters: Sequence[Cluster], confidence: float = 0.95) -> Interval:
    """Return the area under the ROC curve and its two-sided interval; `n` counts clusters with a score.

    Newcombe (2006), "Confidence intervals for an effect size measure based on the Mann-Whitney statistic. Part 2",
    method 5: the areas from which the one seen is not too many of *their own* standard errors away, these by Hanley and
    McNeil's formula with the number of questions on either side. So there is an interval where no mistake was seen,
    and it keeps to 0 and 1. Where the scores spread more over the questions than that formula has it (Obuchowski 1997,
    "Nonparametric analysis of clustered ROC curve data"), it is wider by as much. `benchmarks/judge_intervals.py` has
    what it covers.
    """
    used = [cluster for cluster in clusters if len(cluster[0]) or len(cluster[1])]
    sides = []  # the scores of each side, (m,), and in (n, m) which cluster each belongs to
    for side in (0, 1):
        scores = np.array([score for cluster in used for score in cluster[side]], dtype=np.float64)
        sides.append((scores, np.repeat(np.eye(len(used)), [len(cluster[side]) for cluster in used], axis=1)))
    (right, of_right), (wrong, of_wrong) = sides
    difference = np.subtract.outer(right, wrong)
    won = (difference > 0) + (difference == 0) / 2
    # (n, n): right answers of i that beat wrong ones of j (ties half), and the number of pairs
    wins, pairs = of_right @ won @ of_wrong.T, np.outer(of_right.sum(axis=1), of_wrong.sum(axis=1))
    if not pairs.sum():
        return Interval(None, None, None, len(used), "no right answer stands beside a wrong one")
    area = float(wins.sum() / pairs.sum())
    if len(used) == 1:
        return Interval(area, None, None, 1, "one question has no interval")
    from scipy.optimize import brentq  # late, as it is slow to import

    n_right, n_wrong = (sum(bool(len(cluster[side])) for cluster in used) for side in (0, 1))
    usual = _variance(area, n_right, n_wrong)
    # The variance by what each question, its right and its wrong answers together, adds to the area.
    beyond, n = wins - area * pairs, len(wins)
    clustered = float(n / (n - 1) * ((beyond.sum(axis=0) + beyond.sum(axis=1)) ** 2).sum() / pairs.sum() ** 2)
    excess = max(1.0, clustered / usual) if usual > 0 else 1.0
    reach = float(ndtri((1 + confidence) / 2)) ** 2 * excess

    def too_far(other: float) -> float:
        return (area - other) ** 2 - reach * _variance(other, n_right, n_wrong)

    # Beside the area itself, where too_far(area) is a second root if the area is 0 or 1.
    low = float(brentq(too_far, 0.0, area * (1 - _BESIDE))) if area > 0 else 0.0
    high = float(brentq(too_far, 1 - (1 - area) * (1 - _BESIDE), 1.0)) if area < 1 else 1.0
    return Interval(area, low, high, len(used))


def _variance(area: float, n_right: int, n_wrong: int) -> float:
    """Return the variance of an area seen in so many questions (Hanley and McNeil 1982, with Newcombe's mean size)."""
    others = (n_right + n_wrong) / 2 - 1
    shape = (1 - area) / (2 - area) + area / (1 + area)
    return area * (1 - area) / (n_right * n_wrong) * (1 + others * shape)


def krippendorff_alpha(units: Iterable[Sequence[Hashable]]) -> float | None:
    """Return Krippendorff's alpha of nominal ratings: 1 is full agreement, 0 that of chance, below it is worse.

    Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", section D. `units` has the ratings of each thing,
    one a person; things with one rating say nothing. None where nothing was rated twice, or all ratings are the same:
    then there is nothing on which people could have disagreed.
    """
    rated = [Counter(ratings) for ratings in units if len(ratings) > 1]
    totals = sum(rated, Counter())
    n = totals.total()
    by_chance = n * n - sum(count * count for count in totals.values())
    if not by_chance:
        return None
    apart = sum((one.total() ** 2 - sum(count * count for count in one.values())) / (one.total() - 1) for one in rated)
    return 1 - (n - 1) * apart / by_chance
