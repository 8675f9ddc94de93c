"""What a paired comparison allows one to say."""

from __future__ import annotations

import math

from scipy.special import ndtri

from rag_lab.numbers import plain, signed
from rag_lab.statistics.intervals import PairedDifference
from rag_lab.statistics.randomization import smallest_n

ALPHA = 0.05
POWER = 0.8
MOST_QUESTIONS = 100_000  # beyond this a number of questions is no advice
CANNOT_TELL = "the data cannot tell"


def verdict(
    difference: PairedDifference,
    p_corrected: float | None,
    n_comparisons: int,
    noise_floor: float | None = None,
    higher_is_better: bool = True,
) -> str:
    """Return `better`, `worse`, or a sentence that says why neither can be said.

    `better` and `worse` need a corrected p-value below 0.05, an interval off zero, and, where a noise floor was
    measured, a difference above it; `higher_is_better` tells which is which. Otherwise the sentence names the number of
    questions that would settle a difference of the size seen, or of clusters, since more questions of the same clusters
    would not.
    """
    mean, low, high = difference.mean, difference.low, difference.high
    if mean is None or p_corrected is None:
        return "no question has a score under both"
    if low is None or high is None:
        return f"{CANNOT_TELL}: only {_lone(difference)} under both"
    if difference.ties == difference.n:
        return f"no difference on any of the {difference.n} questions"
    if noise_floor is not None and abs(mean) < noise_floor:
        return f"{CANNOT_TELL}: a difference of {signed(mean)} is below the noise floor of {plain(noise_floor)}"
    if p_corrected < ALPHA and (low > 0 or high < 0):
        return "better" if (mean > 0) is higher_is_better else "worse"
    needed = units_needed(difference, n_comparisons)
    if needed is None:
        return f"{CANNOT_TELL}: wins and losses cancel out over {difference.n} questions"
    count = f"about {needed:,}" if needed <= MOST_QUESTIONS else f"more than {MOST_QUESTIONS:,}"
    clusters = f"clusters of questions, not {difference.n_units}," if difference.n_units < difference.n else "questions"
    return f"{CANNOT_TELL}: {count} {clusters} would settle a difference of {signed(mean)}"


def units_needed(difference: PairedDifference, n_comparisons: int) -> int | None:
    """Return roughly how many questions, or clusters of them, would settle a difference of the size seen.

    n = ((z_alpha + z_power) * sd / |mean|) ** 2 for a two-sided test at 0.05 / n_comparisons (Holm's strictest step)
    with power 0.8, at least the smallest number with which the sign-flip test can get there, rounded up to two digits.
    sd is what the standard error of the mean makes of one unit. None where no difference was seen.
    """
    mean, error, n = difference.mean, difference.standard_error, difference.n_units
    if mean is None or error is None or abs(mean) <= 1e-9 * error * math.sqrt(n):
        return None
    alpha = ALPHA / max(1, n_comparisons)
    z = float(ndtri(1 - alpha / 2) + ndtri(POWER))
    by_power = math.ceil((z * error * math.sqrt(n) / abs(mean)) ** 2 * (1 - 1e-12))
    return _round_up(max(by_power, smallest_n(alpha), n + 1))


def _lone(difference: PairedDifference) -> str:
    return "one question has a score" if difference.n == 1 else f"one cluster ({difference.n} questions) has scores"


def _round_up(number: int) -> int:
    """Round up to two significant digits: the estimate is no better than that."""
    step = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // step) * step
