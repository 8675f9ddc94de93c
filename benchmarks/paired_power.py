"""How likely a difference of a known size would be called one, by the formula of the paired t-test."""

from __future__ import annotations

import math

from scipy.special import nctdtr, stdtrit

from rag_lab.statistics.verdict import ALPHA

_CERTAIN = 40.0  # noncentralities beyond the critical value at which power is 1 to four digits
_ONE_SIDED = 4.0


def power(difference: float, sd: float, n: int, n_comparisons: int = 1) -> float:
    """Return the chance that n questions show a true mean `difference`, at 0.05 / n_comparisons, two-sided.

    That of the paired t-test (Cohen 1988, section 2.3.5, by the noncentral t distribution), which the sign-flip test
    follows closely but for a handful of questions.

    Args:
        difference: the true mean of variant minus baseline.
        sd: the standard deviation of the differences over questions.
        n: questions.
        n_comparisons: size of the family; Holm's strictest step is what the power is for.

    Raises:
        ValueError: if n < 2, or sd is not positive.
    """
    if n < 2 or not sd > 0:
        raise ValueError(f"power needs at least 2 questions and a positive sd, got n={n} and sd={sd}")
    if difference == 0:
        return ALPHA / n_comparisons
    away = math.sqrt(n) * abs(difference) / sd
    critical = float(stdtrit(n - 1, 1 - ALPHA / n_comparisons / 2))
    if away > critical + _CERTAIN:
        return 1.0
    # Far from zero the chance of the wrong sign is below 1e-9, and scipy gives NaN for it.
    wrong_sign = float(nctdtr(n - 1, away, -critical)) if away < _ONE_SIDED else 0.0
    return float(1 - nctdtr(n - 1, away, critical)) + wrong_sign
