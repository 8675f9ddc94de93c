"""What a tested comparison allows one to say, and the smallest difference that it can show.

That difference is known by the spread of the differences alone. A plan that is built on the difference seen takes a
lucky one for true, and a rerun of its size finds it half of the time (Hoenig and Heisey 2001, "The Abuse of Power").
"""

import math
from dataclasses import dataclass
from typing import Literal

from scipy.special import ndtri

from rag_lab._kit.wording import counted, p_text, plain, signed
from rag_lab.statistics.intervals import PairedDifference
from rag_lab.statistics.randomization import ALPHA, smallest_n

POWER = 0.8
FOR_POWER = float(ndtri(POWER))  # what it takes beyond the critical value, in standard errors
CANNOT_TELL = "the data cannot tell"
NO_DIFFERENCE = "no difference"
DEPENDS_ON_FAILURES = "depends on failures"
BELOW_NOISE = "below the noise floor of"

FamilyName = Literal["primary", "secondary"]


def smallest_difference(
    standard_error: float | None, n_units: int, critical: float | None, reach: float = 0.0
) -> float | None:
    """Return the smallest true mean difference that is found with power 0.8; None where none is, or without spread.

    Test and interval must both leave out zero. The statistic T of n units (see `randomization.statistics_of`) exceeds
    c, the critical value, where Student's t exceeds c * sqrt((n - 1) / (n - c**2)): T is at most the root of n. `reach`
    is from the mean to the end of its interval.
    """
    if not standard_error or critical is None or n_units <= critical**2:
        return None
    student = critical * math.sqrt((n_units - 1) / (n_units - critical**2))
    return max(student * standard_error, reach) + FOR_POWER * standard_error


def resolution(difference: float | None, smallest: float | None) -> float | None:
    """Return N / N*: the questions asked as a share of those at which the difference that was seen would be found.

    As arXiv 2605.30315 defines it; N* is for power 0.8. None where no difference could be shown. What was seen may be
    a lucky difference, so that the number says how open a comparison is, and plans nothing by itself.
    """
    return None if difference is None or not smallest else (difference / smallest) ** 2


def sidak(n_comparisons: int, alpha: float) -> float:
    """Return what T of one of so many independent comparisons must exceed (Sidak 1967), where no data tell more."""
    alone = 1 - (1 - alpha) ** (1 / max(1, n_comparisons))
    return float(ndtri(1 - alone / 2))


@dataclass(frozen=True, slots=True)
class Family:
    """The comparisons that are corrected together; `n_tests` of them can be significant, the others are left out."""

    name: FamilyName = "primary"
    alpha: float = ALPHA  # the chance of any false finding among them
    n_tests: int = 1
    critical: float | None = None  # what the first finding must exceed, see `randomization.statistics_of`


@dataclass(frozen=True, slots=True)
class WithFailures:
    """The comparison again with every failed score at the worst value of its metric; None where there is no worst."""

    mean: float | None
    p_corrected: float | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of one comparison, wherever it is shown."""

    difference: PairedDifference
    p_value: float | None  # two-sided, of the comparison alone; None where nothing was compared
    p_corrected: float | None  # within the family; None where so few units differ that it cannot be significant
    family: Family = Family()
    failures: WithFailures | None = None  # None where nothing that counts in it has failed
    noise_floor: float | None = None  # what noise alone stays below; None where it was not measured
    higher_is_better: bool = True

    @property
    def is_found(self) -> bool:
        """Whether it is a finding: by test and interval, also with failures at the worst value, and above the noise."""
        alpha, failures = self.family.alpha, self.failures
        is_significant = self.p_corrected is not None and self.p_corrected < alpha
        if (
            not is_significant
            or not self._excludes_zero
            or abs(self.difference.mean or 0.0) < (self.noise_floor or 0.0)
        ):
            return False
        if failures is None:
            return True
        is_same = failures.mean is not None and failures.mean * (self.difference.mean or 0.0) > 0
        return is_same and failures.p_corrected is not None and failures.p_corrected < alpha

    @property
    def smallest_difference(self) -> float | None:
        """The smallest true difference that a run like this one shows with power 0.8; None where that is unknown."""
        d = self.difference
        reach = 0.0 if d.mean is None or d.low is None or d.high is None else max(d.mean - d.low, d.high - d.mean)
        return smallest_difference(d.standard_error, d.n_units, self.family.critical, reach)

    @property
    def verdict(self) -> str:
        """`better`, `worse`, or a sentence that says why neither can be said."""
        d = self.difference
        if d.mean is None:
            return "no question has a score under both"
        if d.n_units < 2:
            lone = "one question has a score" if d.n == 1 else f"one cluster ({d.n} questions) has scores"
            return f"{CANNOT_TELL}: only {lone} under both"
        if d.ties == d.n:
            missed = f"; {d.n} could have missed one of up to {plain(d.high)} on average" if d.high else ""
            return f"{NO_DIFFERENCE} on any of the {d.n} questions{missed}"
        if self.is_found:
            return "better" if (d.mean > 0) is self.higher_is_better else "worse"
        smallest, all_units = self.smallest_difference, self._units(d.n_units)
        could = f"{all_units} are too few for any difference to be shown"
        if smallest is not None:
            could = f"{all_units} could have shown a difference of {plain(smallest)}"
        return f"{CANNOT_TELL}: {self.doubt or self._too_few_differ or could}"

    @property
    def doubt(self) -> str:
        """Why a difference is no finding although its interval or its p-value alone looks like one; else ""."""
        d, alpha = self.difference, self.family.alpha
        if d.mean is None or self.p_value is None or self.is_found or not (self._excludes_zero or self.p_value < alpha):
            return ""
        if abs(d.mean) < (self.noise_floor or 0.0):
            return f"{signed(d.mean)} is {BELOW_NOISE} {plain(self.noise_floor)}"
        if self._too_few_differ:
            return self._too_few_differ
        if self.p_value >= alpha:
            return f"the interval leaves out zero, but the test does not: p {p_text(self.p_value)}"
        if self.p_corrected is None or self.p_corrected >= alpha:
            among = f"among {self.family.n_tests} comparisons some look like one by chance"
            return f"{among}, corrected p {p_text(self.p_corrected)}"
        if not self._excludes_zero:
            differ = f"{d.n_differing} of {self._units(d.n_units)} differ"
            return f"p {p_text(self.p_value)}, but the interval holds zero: {differ}"
        if self.failures is None or self.failures.mean is None:
            return f"{DEPENDS_ON_FAILURES}: the metric has no worst value with which they could count"
        p = f"corrected p {p_text(self.failures.p_corrected)}"
        worst = f"with each at the worst value the difference is {signed(self.failures.mean)}"
        return f"{DEPENDS_ON_FAILURES}: {worst}, {p}"

    @property
    def _excludes_zero(self) -> bool:
        """Whether the interval leaves out zero."""
        low, high = self.difference.low, self.difference.high
        return low is not None and high is not None and (low > 0 or high < 0)

    @property
    def _too_few_differ(self) -> str:
        d, needed = self.difference, smallest_n(self.family.alpha)
        if d.n_differing >= needed:
            return ""
        differ = f"only {self._units(d.n_differing)} differ{'s' if d.n_differing == 1 else ''}"
        return f"{differ}, and with fewer than {needed} no test can reach p < {self.family.alpha:g}"

    def _units(self, n: int) -> str:
        return counted(n, "question" if self.difference.n_units == self.difference.n else "cluster")
