"""How well scores tell two groups apart: the area under the ROC curve, with an interval that questions stand behind.

The area is the probability that a right answer scores higher than a wrong one, ties counted half (Mann and Whitney
1947). Answers to one question belong together, so what counts as an observation is a question and not an answer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from rag_lab.statistics.bootstrap import Floats
from rag_lab.statistics.intervals import Interval

_BESIDE = 1e-9

# The scores of one question's right answers, and of its wrong ones; either may be empty.
Cluster = tuple[Sequence[float], Sequence[float]]


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
    wins, pairs = _pair_counts(used)
    if not pairs.sum():
        return Interval(None, None, None, len(used), "no right answer stands beside a wrong one")
    area = float(wins.sum() / pairs.sum())
    if len(used) == 1:
        return Interval(area, None, None, 1, "one question has no interval")
    n_right, n_wrong = (sum(bool(len(cluster[side])) for cluster in used) for side in (0, 1))
    usual = _variance(area, n_right, n_wrong)
    excess = max(1.0, _clustered_variance(wins, pairs, area) / usual) if usual > 0 else 1.0
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


def _clustered_variance(wins: Floats, pairs: Floats, area: float) -> float:
    """Return the variance of the area by what each question, its right and its wrong answers together, adds to it."""
    beyond = wins - area * pairs
    n = len(wins)
    return float(n / (n - 1) * ((beyond.sum(axis=0) + beyond.sum(axis=1)) ** 2).sum() / pairs.sum() ** 2)


def _pair_counts(clusters: Sequence[Cluster]) -> tuple[Floats, Floats]:
    """Return (n, n) matrices: right answers of i that beat wrong ones of j (ties half), and the number of pairs."""
    (right, of_right), (wrong, of_wrong) = (_side(clusters, side) for side in (0, 1))
    difference = np.subtract.outer(right, wrong)
    won = (difference > 0) + (difference == 0) / 2
    return of_right @ won @ of_wrong.T, np.outer(of_right.sum(axis=1), of_wrong.sum(axis=1))


def _side(clusters: Sequence[Cluster], side: int) -> tuple[Floats, Floats]:
    """Return the scores of one side, (m,), and in (n, m) which cluster each belongs to."""
    sizes = [len(cluster[side]) for cluster in clusters]
    scores = np.array([score for cluster in clusters for score in cluster[side]], dtype=np.float64)
    return scores, np.repeat(np.eye(len(clusters)), sizes, axis=1)
