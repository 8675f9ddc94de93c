"""The paired randomization test of a whole family at once, and corrections of p-values for many comparisons.

Under the null hypothesis every sign is a coin flip: Fisher (1935), "The Design of Experiments", section 21, for one
comparison; Westfall and Young (1993), "Resampling-Based Multiple Testing", section 2.6, and Romano and Wolf (2005),
"Exact and Approximate Stepdown Methods for Multiple Hypothesis Testing", section 3, for many. A flip turns a unit (a
question, or a cluster of them) in all comparisons together, so that the correction knows how they hang together:
variants that resemble each other cost little. The corrections at the end know the p-values alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from rag_lab.errors import ConfigError, unknown_name

ALPHA = 0.05  # the level of all tests and intervals
N_FLIPS = 20_000  # at least
MOST_FLIPS = 200_000
_CLOSE = (0.0005, 0.06)  # p-values around every level in use: of others N_FLIPS tell on which side they are
_FREE = 500_000_000  # products of a sign and a sum that take no time anybody notices
EXACT_UNITS = 14  # up to so many units that differ, every pattern of signs is tried
_BATCH = 1_000  # flips held in memory at once; fixed, as the flips depend on it
_SLACK = 1e-9  # statistics that differ by rounding alone are equal: ties would else be decided by noise

Floats = npt.NDArray[np.float64]
Correction = Literal["max_t", "bh", "none"]


@dataclass(frozen=True, slots=True)
class FamilyTest:
    """The two-sided tests of k comparisons: (k,) p-values of each alone, and adjusted for all of the family."""

    alone: Floats
    adjusted: Floats
    largest: Floats  # (m,) the largest statistic of the family under each flip, sorted; what has to be exceeded

    def critical(self, alpha: float) -> float:
        """Return what the largest statistic of a family without differences stays below in 1 - alpha of cases."""
        return float(self.largest[min(len(self.largest) - 1, int(np.ceil((1 - alpha) * len(self.largest))))])


def statistics_of(sums: Floats) -> Floats:
    """Return T = |sum| / root of the sum of squares of each column of (g, k), 0 for a column of zeros.

    Not Student's: a column of five units that agree reaches any t by chance, and T no more than the root of five.
    """
    norms = np.sqrt((sums**2).sum(axis=0))
    found: Floats = np.divide(np.abs(sums.sum(axis=0)), norms, out=np.zeros(sums.shape[1]), where=norms > 0)
    return found


def step_down(sums: Floats, seed: int = 0, n_flips: int | None = None) -> FamilyTest:
    """Test that each column is symmetric about zero, by flips of sign that the columns share.

    Exact by enumeration where no more than 14 units differ from zero in any column (a column alone also where it has no
    more itself), else (b + 1) / (m + 1) over m random flips. Adjusted by the step-down maximum: the p-value of a column
    is how often the largest of its own and of all columns with a smaller statistic is as large, and no less than that
    of any column with a larger one. The result depends on the order of the units where flips are random: sort them.

    Args:
        sums: (g, k) sums of the differences of each unit in each comparison, 0 where it has none; k at least 1.
        seed: of the random flips.
        n_flips: m; where None 20,000, and up to 200,000 where a p-value of the family then lies between 0.0005 and 0.06
            (Besag and Clifford, 1991), so that what stands close to a level does not depend on the seed.
    """
    used = sums[np.any(sums != 0, axis=1)]
    found = statistics_of(sums)
    order = np.argsort(-found, kind="stable")
    norms = np.sqrt((used**2).sum(axis=0))
    scaled = np.ascontiguousarray((used / np.where(norms > 0, norms, 1.0))[:, order].T)  # (k, g)
    exact = len(used) <= EXACT_UNITS
    thresholds = (found[order] - _SLACK)[:, None]
    alone, beyond = np.zeros(len(order)), np.zeros(len(order))
    largest = []
    affordable = min(MOST_FLIPS, max(N_FLIPS, _FREE // max(1, scaled.size) // _BATCH * _BATCH))
    whole = scaled.sum(axis=1, keepdims=True)
    flipped = _flips(len(used), seed, n_flips or affordable)
    for turned in [(1 - _all_signs(len(used))) / 2] if exact else flipped:
        drawn = np.abs(whole - 2 * (scaled @ turned))
        alone += (drawn >= thresholds).sum(axis=1)
        np.maximum.accumulate(drawn[::-1], axis=0, out=drawn[::-1])
        beyond += (drawn >= thresholds).sum(axis=1)
        largest.append(drawn[0])
        if len(largest) * _BATCH == N_FLIPS and n_flips is None:
            p_values = np.concatenate([alone, beyond]) / N_FLIPS
            if not ((p_values > _CLOSE[0]) & (p_values < _CLOSE[1])).any():
                break
    every = np.sort(np.concatenate(largest))
    seen, of = (0, len(every)) if exact else (1, len(every) + 1)
    p_alone = np.empty(len(order))
    p_alone[order] = (alone + seen) / of
    # The columns in which few units differ have their exact p-values. Of sorted magnitudes the sums of all patterns are
    # the same to the last digit for any order of the units.
    for column in () if exact else np.flatnonzero((sums != 0).sum(axis=0) <= EXACT_UNITS):
        magnitudes = np.sort(np.abs(sums[sums[:, column] != 0, column]))
        threshold = abs(sums[:, column].sum()) - _SLACK * magnitudes.sum()
        p_alone[column] = float((np.abs(magnitudes @ _all_signs(len(magnitudes))) >= threshold).mean())
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(np.maximum((beyond + seen) / of, p_alone[order]))
    return FamilyTest(p_alone, adjusted, every)


def smallest_n(alpha: float) -> int:
    """Return how many units must differ before the exact p-value can fall below `alpha`."""
    return int(np.floor(np.log2(2 / alpha))) + 1


@cache
def _all_signs(units: int) -> Floats:
    """Return (units, 2**(units-1)) signs: the other half are mirror images, and just as extreme."""
    if units == 0:
        return np.zeros((0, 1))
    bits = np.arange(2 ** (units - 1))[None, :] >> np.arange(units)[:, None] & 1
    return np.where(bits, -1.0, 1.0)


def _flips(units: int, seed: int, n_flips: int) -> Iterator[Floats]:
    """Yield (units, at most _BATCH) of 1 where a sign is turned, else 0, the same for the first units of any number."""
    for start in range(0, n_flips, _BATCH):
        drawn = np.random.default_rng([seed, 1, start]).bytes(units * _BATCH // 8)
        bits = np.unpackbits(np.frombuffer(drawn, dtype=np.uint8).reshape(units, _BATCH // 8), axis=1)
        yield bits[:, : n_flips - start].astype(np.float64)  # a fifth of the time that looking up their signs takes


def corrected(alone: Sequence[float], adjusted: Sequence[float], method: Correction = "max_t") -> list[float | None]:
    """Return the p-values of a family, each `alone` or `adjusted` by the step-down maximum, corrected by `method`.

    `max_t` (those adjusted), `none`, or `bh`: Benjamini and Hochberg (1995), "Controlling the False Discovery Rate". Of
    the findings below a level, at most that share is false on average: weaker than the control of any false finding,
    for screening many variants. It holds for independent tests and for positively dependent ones, as those against one
    baseline are.
    """
    check_correction(method)
    if method == "bh":
        from scipy.stats import false_discovery_control  # late, as it is slow to import

        return [float(p_value) for p_value in false_discovery_control(alone)]
    return list(adjusted if method == "max_t" else alone)


def check_correction(method: str) -> None:
    """Refuse a method that there is not."""
    if method not in get_args(Correction):
        raise ConfigError(unknown_name("correction", method, get_args(Correction)))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return the step-down adjusted p-values of Holm (1979), "A Simple Sequentially Rejective Multiple Test Procedure".

    They keep the chance of any false finding in the family at the level they are compared with, whatever the dependence
    between the tests. A None (nothing was tested) stays None and does not count in the family.
    """
    tested = sorted((p_value, index) for index, p_value in enumerate(p_values) if p_value is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    floor = 0.0
    for rank, (p_value, index) in enumerate(tested):
        floor = max(floor, min(1.0, p_value * (len(tested) - rank)))
        adjusted[index] = floor
    return adjusted


def hommel(p_values: Sequence[float | None]) -> list[float | None]:
    """Return the adjusted p-values of Hommel (1988), "A Stagewise Rejective Multiple Test Procedure".

    It tests every subset of the family by Simes (1986), whose smallest size * p / rank is below the level too often
    only where tests depend on each other negatively; those of variants against one baseline, on the same questions,
    depend positively (Sarkar 1998). It finds all that Holm finds, and more where many p-values are small. A None stays
    None.
    """
    tested = sorted((p_value, index) for index, p_value in enumerate(p_values) if p_value is not None)
    p = [p_value for p_value, _ in tested]
    found = list(p)
    for size in range(len(p), 1, -1):
        least = len(p) - size  # where the largest of the family that make a subset of this size begin
        simes = min(size * one / rank for rank, one in enumerate(p[least + 1 :], 2))
        found = [max(so_far, min(simes, size * p[min(place, least)])) for place, so_far in enumerate(found)]
    adjusted: list[float | None] = [None] * len(p_values)
    for (_, index), value in zip(tested, found, strict=True):
        adjusted[index] = min(1.0, value)
    return adjusted
