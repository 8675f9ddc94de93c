"""What a paired comparison allows one to say."""

from __future__ import annotations

import math

from scipy.special import ndtri

from rag_lab._kit.numbers import p_text, plain, signed
from rag_lab._kit.wording import counted
from rag_lab.statistics.intervals import PairedDifference
from rag_lab.statistics.randomization import smallest_n

ALPHA = 0.05
POWER = 0.8
MOST_QUESTIONS = 100_000  # beyond this a number of questions is no advice
CANNOT_TELL = "the data cannot tell"
NO_DIFFERENCE = "no difference"


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
    would not; before that it says why what looks like a finding is none (see `doubt`).
    """
    mean = difference.mean
    if mean is None or p_corrected is None:
        return "no question has a score under both"
    if difference.n_units < 2:
        return f"{CANNOT_TELL}: only {_lone(difference)} under both"
    if difference.ties == difference.n:
        return f"{NO_DIFFERENCE} on any of the {difference.n} questions"
    if noise_floor is not None and abs(mean) < noise_floor:
        return f"{CANNOT_TELL}: a difference of {signed(mean)} is below the noise floor of {plain(noise_floor)}"
    if _is_found(difference, p_corrected):
        return "better" if (mean > 0) is higher_is_better else "worse"
    why = doubt(difference, p_corrected, n_comparisons)
    return f"{CANNOT_TELL}: {f'{why}; ' if why else ''}{_advice(difference, n_comparisons)}"


def doubt(
    difference: PairedDifference, p_corrected: float | None, n_comparisons: int, noise_floor: float | None = None
) -> str:
    """Return why a difference is no finding although its interval or its p-value alone looks like one.

    "" where nothing looks so, and where it is a finding. The arguments are those of `verdict`.
    """
    p_value, mean = difference.p_value, difference.mean
    if p_value is None or p_corrected is None or mean is None or not (_is_apart(difference) or p_value < ALPHA):
        return ""
    if noise_floor is not None and abs(mean) < noise_floor:
        return f"below the noise floor of {plain(noise_floor)}"
    if _is_found(difference, p_corrected):
        return ""
    needed = smallest_n(ALPHA)
    if difference.n_apart < needed:
        units = "question" if difference.n_units == difference.n else "cluster"
        differ = f"only {counted(difference.n_apart, units)} differ{'s' if difference.n_apart == 1 else ''}"
        return f"{differ}, and with fewer than {needed} no test can reach p < {ALPHA}"
    if p_value >= ALPHA:
        return f"the interval leaves out zero, but the test does not: p {p_text(p_value)}"
    if p_corrected >= ALPHA:
        return f"among {n_comparisons} comparisons some look like one by chance, corrected p {p_text(p_corrected)}"
    return f"the test finds it (corrected p {p_text(p_corrected)}), but the interval holds zero"


def _is_found(difference: PairedDifference, p_corrected: float) -> bool:
    return p_corrected < ALPHA and _is_apart(difference)


def _is_apart(difference: PairedDifference) -> bool:
    """Tell whether the interval leaves out zero."""
    low, high = difference.low, difference.high
    return low is not None and high is not None and (low > 0 or high < 0)


def _advice(difference: PairedDifference, n_comparisons: int) -> str:
    """Say how many questions, or clusters of them, would settle a difference of the size seen."""
    needed = units_needed(difference, n_comparisons)
    if needed is None:
        return f"wins and losses cancel out over {difference.n} questions"
    count = f"about {needed:,}" if needed <= MOST_QUESTIONS else f"more than {MOST_QUESTIONS:,}"
    clusters = f"clusters of questions, not {difference.n_units}," if difference.n_units < difference.n else "questions"
    return f"{count} {clusters} would settle a difference of {signed(difference.mean)}"


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
