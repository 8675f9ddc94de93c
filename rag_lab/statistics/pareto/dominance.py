"""Which points are on the Pareto front: no other is as good at no more cost, and better or cheaper.

Pareto dominance, as in Ehrgott (2005), "Multicriteria Optimization", section 2.1, with costs that are too close to be
told apart taken for equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_DIGITS = 12  # qualities that agree to so many are equal but for rounding

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Noticed:
    """How large a difference of a cost must be to count: `least`, in its unit, and `share` of the smaller cost."""

    least: float = 0.0
    share: float = 0.0


def as_noticed(costs: Floats, noticed: Noticed) -> Floats:
    """Return costs in which each that is not noticeably more than a cheaper one is equal to it.

    From the cheapest upward, all that lie within what is noticed of one cost are counted as that cost; the first that
    lies further begins a new group. So "about as cheap" is the same from all sides, and dominance has no circles.

    Args:
        costs: (k, r), of k points in r samples.
        noticed: the smallest difference that counts.
    """
    order = np.argsort(costs, axis=0, kind="stable")
    ranked = np.take_along_axis(costs, order, axis=0)
    cheapest = ranked[0].copy()
    for row in ranked:
        reach = np.maximum(noticed.least, noticed.share * cheapest)
        cheapest = np.where(row - cheapest < reach, cheapest, row)
        row[:] = cheapest
    found = np.empty_like(ranked)
    np.put_along_axis(found, order, ranked, axis=0)
    return found


def differ(costs: Sequence[float], noticed: Noticed) -> bool:
    """Tell whether any cost is noticeably more than another; `costs` are one or more."""
    return len(np.unique(as_noticed(np.array(costs, dtype=float)[:, None], noticed))) > 1


def not_dominated(quality: Floats, costs: Sequence[Floats]) -> Bools:
    """Return which points no other dominates, sample by sample.

    Args:
        quality: (k, r), of k points in r samples; more is better.
        costs: for each cost (k, r); less is better. Without any, the best quality is the front.
    """
    good = np.round(quality, _DIGITS)
    beaten = np.zeros(good.shape, dtype=bool)
    for other in range(len(good)):
        as_good, better = good[other] >= good, good[other] > good
        for cost in costs:
            as_good &= cost[other] <= cost
            better |= cost[other] < cost
        beaten |= as_good & better
    return ~beaten
