"""What share of a reachable gain was reached: a ratio of two paired means, with Fieller's interval."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from rag_lab.statistics.interval_ends import FEW_CLUSTERS, FEW_VALUES
from rag_lab.statistics.resampled_units import Units, units


@dataclass(frozen=True, slots=True)
class GainShare:
    """The share with its interval; None where it cannot be told, and `reason` then says why.

    Below 0 the value is worse than the floor, above 1 it is better than the ceiling.
    """

    share: float | None
    low: float | None
    high: float | None
    n: int  # questions
    reason: str = ""


def gain_share(
    values: Sequence[float],
    floors: Sequence[float],
    ceilings: Sequence[float],
    *,
    sign: int = 1,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> GainShare:
    """Return mean(value - floor) / mean(ceiling - floor) over questions.

    The interval holds the ratios that Student's test of mean(value - floor - ratio * (ceiling - floor)) does not
    reject (Fieller 1954, "Some Problems in Interval Estimation"), with variances that are robust to clusters. So it is
    told only where the gain itself can be told from zero, and where it lies on the better side.

    Args:
        values, floors, ceilings: of the same questions, in the same order.
        sign: 1 where more is better, -1 where less is.
        clusters: the cluster of each question, None where questions are independent.
        confidence: of the interval.

    Raises:
        ValueError: if the lengths differ or a value is not finite.
    """
    value, floor, ceiling = (np.asarray(column, dtype=np.float64) for column in (values, floors, ceilings))
    if not len(value) == len(floor) == len(ceiling):
        raise ValueError(f"paired samples must have one length, got {len(value)}, {len(floor)} and {len(ceiling)}")
    n = len(value)
    if n == 0:
        return GainShare(None, None, None, 0, "no question has all three scores")
    reached, gain = sign * (value - floor), sign * (ceiling - floor)
    ours, theirs, both = (units(column, clusters) for column in (reached, gain, reached + gain))
    if theirs.mean <= 0:
        return GainShare(None, None, None, n, "there is no gain: the ceiling is not above the floor")
    if len(theirs.sums) < (FEW_VALUES if clusters is None else FEW_CLUSTERS):
        return GainShare(None, None, None, n, "too few questions to tell a share")
    ends = _fieller(ours, theirs, both, float(stdtrit(theirs.degrees_of_freedom, (1 + confidence) / 2)))
    if ends is None:
        return GainShare(None, None, None, n, "the gain cannot be told from chance")
    return GainShare(ours.mean / theirs.mean, *ends, n)


def _fieller(reached: Units, gain: Units, both: Units, t: float) -> tuple[float, float] | None:
    """Return the ends of the interval; None where the gain is not told from zero, so that no ratio is rejected.

    `both` are the sums of the two, of which their covariance is found.
    """
    ours, theirs, together = (one.standard_error or 0.0 for one in (reached, gain, both))
    shared = (together**2 - ours**2 - theirs**2) / 2  # the covariance of the two means
    share, mean = reached.mean / gain.mean, gain.mean
    doubt = (t * theirs / mean) ** 2  # 1 where the test of the gain is at the edge
    if doubt >= 1:
        return None
    tilt = t**2 * shared / mean**2
    inside = (share - tilt) ** 2 - (1 - doubt) * (share**2 - (t * ours / mean) ** 2)
    half = math.sqrt(max(0.0, inside))
    return (share - tilt - half) / (1 - doubt), (share - tilt + half) / (1 - doubt)
