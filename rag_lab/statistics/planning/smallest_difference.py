"""The smallest difference that a number of questions can show: what "the data cannot tell" means, before it is said.

It is told by the spread of the differences alone. A plan that is built on the difference seen takes a lucky one for
true, and a rerun of its size finds it half of the time (Hoenig and Heisey 2001, "The Abuse of Power").
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from rag_lab.statistics.resampled_units import Units
from rag_lab.statistics.verdict import ALPHA, POWER

_FLIPS = 4_000
Floats = npt.NDArray[np.float64]


def smallest_difference(column: Units, n_units: int, critical: float) -> float | None:
    """Return the smallest true mean difference that `n_units` units find with a power of 0.8.

    None where they find none, or the column has no spread.

    Args:
        column: differences that were seen; their spread alone counts.
        n_units: how many questions, or clusters, are asked.
        critical: what |T| must reach, as by `critical_value` or `sidak`.
    """
    error = column.standard_error if len(column.sums) else None
    if error is None or not error > 0 or n_units <= critical**2:
        return None
    # T of n units is at most their root: the same bound as a value of Student's t.
    student = critical * math.sqrt((n_units - 1) / (n_units - critical**2))
    return (student + float(ndtri(POWER))) * error * math.sqrt(len(column.sums) / n_units)


def critical_value(sums: Floats, alpha: float = ALPHA, seed: int = 0) -> float:
    """Return what |T| must reach in a family: the 1 - alpha point of its maximum over sign flips.

    T = |sum| / root of the sum of squares, its sign flips shared by all columns (Westfall and Young 1993,
    "Resampling-Based Multiple Testing").

    Args:
        sums: (m, k) the sum of the differences of each unit, 0 where missing.
        alpha: the level of the family.
        seed: of the flips.
    """
    scale = np.sqrt((sums**2).sum(axis=0))
    columns = sums[:, scale > 0] / scale[scale > 0]
    if not columns.size:
        return sidak(1, alpha)
    signs = np.random.default_rng([seed, 5]).choice([-1.0, 1.0], (_FLIPS, len(columns)))
    return float(np.quantile(np.abs(signs @ columns).max(axis=1), 1 - alpha))


def sidak(n_comparisons: int, alpha: float = ALPHA) -> float:
    """Return what |T| of one of so many independent comparisons must reach (Sidak 1967), where no data tell more."""
    alone = 1 - (1 - alpha) ** (1 / max(1, n_comparisons))
    return float(ndtri(1 - alone / 2))
