"""Pareto fronts of quality against costs, and in what share of resamples of the questions a variant is on them.

The bootstrap of Efron (1979) with Poisson frequencies, as in `statistics/bootstrap.py`: each unit counts Poisson(1)
times, the same for the quality and the costs of all variants, so what they have in common does not count as chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_lab.statistics.bootstrap import poisson_draws
from rag_lab.statistics.pareto.dominance import Noticed, as_noticed, not_dominated
from rag_lab.statistics.pareto.quantities import Means, Quantity

N_RESAMPLES = 2_000
_BATCH = 200  # fixed, as the draws depend on it; a divisor of N_RESAMPLES
_SEED = 0
_STREAM = 7  # of random numbers, beside those of the other methods

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Fronts:
    """Of f fronts and k variants: who is `on` them, and the `shares` of resamples in which it is; both (f, k)."""

    on: Bools
    shares: Floats


def fronts(quality: Means, costs: Sequence[tuple[Quantity, Noticed]], which: Sequence[Sequence[int]]) -> Fronts:
    """Return the fronts of `quality` against each choice of `costs` in `which`.

    Args:
        quality: of the variants; more is better.
        costs: of the same variants and units, with the smallest difference that counts.
        which: for each front the costs that it is against, by their place.
    """
    units = len(quality.sums)
    seen = _on(quality, costs, which, np.ones((units, 1)))
    resamples = poisson_draws(units, _SEED, _STREAM, N_RESAMPLES // _BATCH, _BATCH)
    drawn = sum(_on(quality, costs, which, draws).sum(axis=2) for draws in resamples)
    return Fronts(seen[:, :, 0], np.asarray(drawn / N_RESAMPLES))


def _on(
    quality: Means, costs: Sequence[tuple[Quantity, Noticed]], which: Sequence[Sequence[int]], weights: Floats
) -> Bools:
    """Return (f, k, r): who is on each front under each weighting."""
    good = quality.at(weights)
    told = [as_noticed(cost.at(weights), noticed) for cost, noticed in costs]
    return np.stack([not_dominated(good, [told[place] for place in places]) for places in which])
