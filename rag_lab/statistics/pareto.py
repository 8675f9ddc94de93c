"""Which of several variants, each with a quality and costs, no other beats, and how far that depends on the questions.

A point is on the front where no other is as good at no more cost, and better or cheaper: Pareto dominance, as in
Ehrgott (2005), "Multicriteria Optimization", section 2.1, with costs that are too close to differ taken for equal. In
what share of resamples a variant is on it is found by the bootstrap of Efron (1979) with Poisson frequencies, as in
`intervals`: each unit counts Poisson(1) times, the same for the quality and the costs of all variants, so what they
have in common does not count as chance.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_lab.statistics.intervals import Floats, poisson_draws

_DIGITS = 12  # qualities that agree to so many are equal but for rounding

Bools = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]
N_RESAMPLES = 2_000
_BATCH = 200  # fixed, as the draws depend on it; a divisor of N_RESAMPLES
_STREAM = 7  # of random numbers, beside those of the other methods


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The difference of a cost that counts: `absolute`, in its unit, and `relative` to the smaller cost."""

    absolute: float = 0.0
    relative: float = 0.0


def snap(costs: Floats, tolerance: Tolerance) -> Floats:
    """Return costs, (k, r), each equal to a cheaper one that it exceeds by less than the tolerance.

    From the cheapest upward, all that lie within the tolerance of one cost are counted as that cost; the first that
    lies further begins a new group. So "about as cheap" is the same from all sides, and dominance has no circles.
    """
    order = np.argsort(costs, axis=0, kind="stable")
    ranked = np.take_along_axis(costs, order, axis=0)
    cheapest = ranked[0].copy()
    for row in ranked:
        reach = np.maximum(tolerance.absolute, tolerance.relative * cheapest)
        cheapest = np.where(row - cheapest < reach, cheapest, row)
        row[:] = cheapest
    found = np.empty_like(ranked)
    np.put_along_axis(found, order, ranked, axis=0)
    return found


def differ(costs: Sequence[float], tolerance: Tolerance) -> bool:
    """Tell whether any cost is above another by the tolerance or more; `costs` are one or more."""
    return len(np.unique(snap(np.array(costs, dtype=float)[:, None], tolerance))) > 1


def not_dominated(quality: Floats, costs: Sequence[Floats]) -> Bools:
    """Return which points no other dominates, sample by sample.

    `quality` and each of `costs` are (k, r), of k points in r samples; without costs the best quality is the front.
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


@dataclass(frozen=True, slots=True)
class Means:
    """For each variant the sum, over its parts, of the mean of what each part measured."""

    sums: Floats  # (g, k, s) of g units, k variants and s parts (one, where a variant is measured as a whole)
    counts: Floats  # likewise

    def at(self, weights: Floats) -> Floats:
        """Return (k, r) means, where each of g units counts as often as `weights`, whole (g, r), says.

        Where a variant has nothing that counts, it is the mean under equal weights; 0 where it has nothing at all.
        """
        units, variants, parts = self.sums.shape
        drawn = self.sums.reshape(units, -1).T @ weights
        totals = self.counts.reshape(units, -1).T @ weights
        every = self.counts.sum(axis=0).ravel()
        whole = np.divide(self.sums.sum(axis=0).ravel(), every, out=np.zeros(len(every)), where=every > 0)
        means = np.where(totals > 0, drawn / np.maximum(totals, 1), whole[:, None])
        result: Floats = means.reshape(variants, parts, weights.shape[1]).sum(axis=1)
        return result


@dataclass(frozen=True, slots=True)
class Medians:
    """For each variant the median of its values; `values` rise, and `places` are the units that they belong to."""

    values: tuple[Floats, ...]
    places: tuple[Places, ...]

    def at(self, weights: Floats) -> Floats:
        """Return (k, r) medians; see `Means.at`."""
        whole, found = weights.astype(np.int32), []
        for values, places in zip(self.values, self.places, strict=True):
            if not len(values):
                found.append(np.zeros(weights.shape[1]))
                continue
            so_far = np.cumsum(whole[places], axis=0)
            total = so_far[-1]
            below, above = ((so_far <= place).sum(axis=0) for place in ((total - 1) // 2, total // 2))
            drawn = (values[below] + values[np.minimum(above, len(values) - 1)]) / 2
            found.append(np.where(total > 0, drawn, np.median(values)))
        return np.stack(found)


def medians(values: Sequence[Floats], places: Sequence[Places]) -> Medians:
    """Return the medians of values in any order; the order of the values does not matter."""
    orders = [np.lexsort((place, value)) for value, place in zip(values, places, strict=True)]
    ranked = tuple(value[order] for value, order in zip(values, orders, strict=True))
    return Medians(ranked, tuple(place[order] for place, order in zip(places, orders, strict=True)))


Quantity = Means | Medians  # one number for each of k variants


def fronts(
    quality: Means, costs: Sequence[tuple[Quantity, Tolerance]], which: Sequence[Sequence[int]]
) -> tuple[Bools, Floats]:
    """Return who is on the fronts of `quality` against each choice of `costs`, by their place, in `which`.

    Beside it the share of resamples in which it is; both (f, k), of f fronts and k variants.
    """
    units = len(quality.sums)
    seen = _on(quality, costs, which, np.ones((units, 1)))
    resamples = poisson_draws(units, 0, _STREAM, N_RESAMPLES // _BATCH, _BATCH)
    drawn = sum(_on(quality, costs, which, draws).sum(axis=2) for draws in resamples)
    return seen[:, :, 0], np.asarray(drawn / N_RESAMPLES)


def _on(
    quality: Means, costs: Sequence[tuple[Quantity, Tolerance]], which: Sequence[Sequence[int]], weights: Floats
) -> Bools:
    """Return (f, k, r): who is on each front under each weighting."""
    good = quality.at(weights)
    snapped = [snap(cost.at(weights), tolerance) for cost, tolerance in costs]
    return np.stack([not_dominated(good, [snapped[place] for place in places]) for places in which])
