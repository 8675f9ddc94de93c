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

_DIGITS = 12  # averages that agree to so many are equal but for rounding

Floats = npt.NDArray[np.float64]


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
    def averages(self) -> Floats:
        """The mean of each unit."""
        return self.sums / self.counts

    @property
    def n_uncommon(self) -> int:
        """Number of units that differ from the commonest one; all, where no two are equal."""
        _, how_often = np.unique(np.round(self.averages, _DIGITS), return_counts=True)
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
        return math.sqrt(math.fsum(residuals**2 / (1 - self._shares))) / math.fsum(self.counts)

    @property
    def degrees_of_freedom(self) -> float:
        """Satterthwaite's, of the variance of the mean; units - 1 for units of equal size, less for unequal ones.

        Bell and McCaffrey (2002), as Pustejovsky and Tipton (2018), "Small-Sample Methods for Cluster-Robust Variance
        Estimation", equation 11, with independent values as the working model. Needs 2 units.
        """
        squares = self._shares**2
        leverage = squares / (1 - self._shares)
        return 1 / math.fsum([*squares, math.fsum(leverage) ** 2, *-(leverage**2)])

    @property
    def _shares(self) -> Floats:
        return np.asarray(self.counts / math.fsum(self.counts))

    def with_one_more(self, value: float) -> Units:
        """Return these units and one more of which each value is `value`.

        Its size is the quadratic mean of the others', by which a unit weighs in a variance: with the plain mean an
        interval misses clusters that are lost as a whole where few are large.
        """
        size = math.sqrt(math.fsum(self.counts**2) / len(self.counts))
        return _sorted(np.append(self.sums, value * size), np.append(self.counts, size))

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
