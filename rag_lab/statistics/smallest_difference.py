"""The smallest difference that a number of questions can show: what "the data cannot tell" means.

It is told by the spread of the differences alone. A plan that is built on the difference seen takes a lucky one for
true, and a rerun of its size finds it half of the time (Hoenig and Heisey 2001, "The Abuse of Power").
"""

from __future__ import annotations

import math

from scipy.special import ndtri

POWER = 0.8
FOR_POWER = float(ndtri(POWER))  # what it takes beyond the critical value, in standard errors


def smallest_difference(
    standard_error: float | None, n_units: int, critical: float | None, reach: float = 0.0
) -> float | None:
    """Return the smallest true mean difference that is found with power 0.8; None where none is, or without spread.

    Test and interval must both leave out zero. The statistic T of n units (see `randomization.statistics_of`) exceeds
    c where Student's t exceeds c * sqrt((n - 1) / (n - c**2)): T is at most the root of n.

    Args:
        standard_error: of the mean of so many units.
        n_units: questions, or clusters.
        critical: what T must exceed.
        reach: from the mean to the end of its interval.
    """
    if not standard_error or critical is None or n_units <= critical**2:
        return None
    student = critical * math.sqrt((n_units - 1) / (n_units - critical**2))
    return max(student * standard_error, reach) + FOR_POWER * standard_error


def sidak(n_comparisons: int, alpha: float) -> float:
    """Return what T of one of so many independent comparisons must exceed (Sidak 1967), where no data tell more."""
    alone = 1 - (1 - alpha) ** (1 / max(1, n_comparisons))
    return float(ndtri(1 - alone / 2))
