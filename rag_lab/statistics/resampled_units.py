"""What is resampled: single values, or clusters of values that are not independent of each other.

Questions about one document, or one question in several languages, say less than as many unrelated questions. Declared
as clusters they are drawn, and their signs flipped, together (Cameron, Gelbach and Miller 2008, "Bootstrap-Based
Improvements for Inference with Clustered Errors", section II).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Units:
    """Sums and counts of the values of each unit, sorted, so that the order of the values does not matter."""

    sums: Floats  # (g,)
    counts: Floats  # (g,)

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
        return math.fsum(self.sums) / self.n

    @property
    def standard_error(self) -> float | None:
        """The standard error of the mean, robust to dependence within units; None for a single unit."""
        g = len(self.sums)
        if g < 2:
            return None
        residuals = self.sums - self.mean * self.counts
        return math.sqrt(g / (g - 1) * math.fsum(residuals**2)) / self.n

    def mirrored(self) -> Units:
        """Return the units of the negated values."""
        return _sorted(0.0 - self.sums, self.counts)


def units(values: Sequence[float] | Floats, clusters: Sequence[Hashable] | None = None) -> Units:
    """Return each value as a unit, or the values of each cluster together.

    Raises:
        ValueError: if a value is not finite, or there is not one cluster a value.
    """
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


def padded(columns: Sequence[Units]) -> tuple[Floats, Floats]:
    """Return the sums and the counts as (g, k), g the most units of any; the others end in zeros."""
    rows = max(len(column.sums) for column in columns)
    sums, counts = np.zeros((rows, len(columns))), np.zeros((rows, len(columns)))
    for index, column in enumerate(columns):
        sums[: len(column.sums), index] = column.sums
        counts[: len(column.counts), index] = column.counts
    return sums, counts


def _sorted(sums: Floats, counts: Floats) -> Units:
    order = np.lexsort((counts, sums))
    return Units(sums[order] + 0.0, counts[order])
