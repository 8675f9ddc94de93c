"""What is measured of each variant on the same units (questions, or clusters of them), under any weighting of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]


class Quantity(Protocol):
    """One number for each of k variants."""

    def at(self, weights: Floats) -> Floats:
        """Return (k, r): the numbers where each of g units counts as often as `weights`, whole (g, r), says.

        Where a variant has nothing that counts, it is the number under equal weights; 0 where it has nothing at all.
        """
        ...


@dataclass(frozen=True, slots=True)
class Means:
    """For each variant the sum, over its parts, of the mean of what each part measured.

    sums, counts: (g, k, s) of g units, k variants and s parts (one, where a variant is measured as a whole).
    """

    sums: Floats
    counts: Floats

    def at(self, weights: Floats) -> Floats:
        """Return (k, r) means; see `Quantity`."""
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
        """Return (k, r) medians; see `Quantity`."""
        whole = weights.astype(np.int32)
        pairs = zip(self.values, self.places, strict=True)
        return np.stack([_median(values, whole[places]) for values, places in pairs])


def medians(values: Sequence[Floats], places: Sequence[Places]) -> Medians:
    """Return the medians of values in any order; the order of the values does not matter."""
    orders = [np.lexsort((place, value)) for value, place in zip(values, places, strict=True)]
    ranked = tuple(value[order] for value, order in zip(values, orders, strict=True))
    return Medians(ranked, tuple(place[order] for place, order in zip(places, orders, strict=True)))


def _median(values: Floats, weights: npt.NDArray[np.int32]) -> Floats:
    """Return (r,): the median of rising `values`, each as often as its row of `weights` says."""
    if not len(values):
        return np.zeros(weights.shape[1])
    so_far = np.cumsum(weights, axis=0)
    total = so_far[-1]
    below, above = ((so_far <= place).sum(axis=0) for place in ((total - 1) // 2, total // 2))
    drawn = (values[below] + values[np.minimum(above, len(values) - 1)]) / 2
    result: Floats = np.where(total > 0, drawn, np.median(values))
    return result
