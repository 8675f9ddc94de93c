"""How well scores tell two groups apart: the area under the ROC curve, with a bootstrap interval over questions.

The area is the probability that a right answer scores higher than a wrong one, ties counted half (Mann and Whitney
1947). Answers to one question belong together, so questions are resampled and not answers (Field and Welsh 2007,
"Bootstrapping clustered data").
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_lab.statistics.bootstrap import Floats
from rag_lab.statistics.intervals import Interval

_N_RESAMPLES = 2_000

# The scores of one question's right answers, and of its wrong ones; either may be empty.
Cluster = tuple[Sequence[float], Sequence[float]]


def auc_interval(clusters: Sequence[Cluster], confidence: float = 0.95, seed: int = 0) -> Interval:
    """Return the area under the ROC curve and its percentile bootstrap interval; `n` counts clusters with a score.

    Where right and wrong are told apart without a mistake, resampling cannot see one either; the lower bound is then
    the least area with which n questions in a row would go right in a share of 1 - `confidence` of samples (the exact
    binomial bound), and likewise at the other end.
    """
    used = [cluster for cluster in clusters if len(cluster[0]) or len(cluster[1])]
    wins, pairs = _pair_counts(used)
    if not pairs.sum():
        return Interval(None, None, None, len(used), "no right answer stands beside a wrong one")
    area = float(wins.sum() / pairs.sum())
    if len(used) == 1:
        return Interval(area, None, None, 1, "one question has no interval")
    low, high = _bounds(wins, pairs, confidence, seed)
    rarest = (1 - confidence) ** (1 / len(used))
    if area == 1:
        return Interval(area, rarest, 1.0, len(used), "exact bound, since no mistake was seen")
    if area == 0:
        return Interval(area, 0.0, 1 - rarest, len(used), "exact bound, since nothing right was seen")
    return Interval(area, low, high, len(used))


def _pair_counts(clusters: Sequence[Cluster]) -> tuple[Floats, Floats]:
    """Return (n, n) matrices: right answers of i that beat wrong ones of j (ties half), and the number of pairs."""
    shape = (len(clusters), len(clusters))
    wins, pairs = np.zeros(shape), np.zeros(shape)
    for i, (right, _) in enumerate(clusters):
        for j, (_, wrong) in enumerate(clusters):
            difference = np.subtract.outer(np.asarray(right, dtype=float), np.asarray(wrong, dtype=float))
            wins[i, j] = (difference > 0).sum() + (difference == 0).sum() / 2
            pairs[i, j] = difference.size
    return wins, pairs


def _bounds(wins: Floats, pairs: Floats, confidence: float, seed: int) -> tuple[float, float]:
    n = len(wins)
    weights = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=_N_RESAMPLES).astype(float)
    won = ((weights @ wins) * weights).sum(axis=1)
    of = ((weights @ pairs) * weights).sum(axis=1)
    tail = (1 - confidence) / 2
    low, high = np.quantile(won[of > 0] / of[of > 0], [tail, 1 - tail])
    return float(low), float(high)
