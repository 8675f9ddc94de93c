"""A test of the mean of bounded values that allows for values which are possible and were not seen.

Gaffke (2005), "Three Test Statistics for a Nonparametric One-Sided Hypothesis on the Mean of a Nonnegative Variable";
Learned-Miller and Thomas (2019), "A New Confidence Interval for the Mean of a Bounded Random Variable", put it as an
interval. The worst possible value is appended to those that were seen, and all are weighed at random, with weights from
the uniform distribution on those that add up to one: the p-value is the chance that the weighed mean is not above zero.
Where values are all or nothing it is the exact binomial test; where they are many and alike, Student's.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_HALVINGS = 26
_STEP, _N_STEPS = 0.14, 50  # of the integral; p-values above 1e-4 are right to half a hundredth of themselves
_NO_LOSS = 1e-9  # the worst value of a column that has none below zero
_NOTHING = 30.0  # what has fallen by exp(-30) adds nothing
Floats = npt.NDArray[np.float64]


def p_mean_not_positive(values: Floats, worst: Floats) -> Floats:
    """Return for each column the one-sided p-value of its mean being zero or less.

    Args:
        values: (m, k), independent values down each column.
        worst: (k,), the least value that is possible, below zero.

    Returns:
        (k,) p-values.
    """
    appended = np.vstack([values, worst])
    result = np.ones(appended.shape[1])
    some = (appended > 0).any(axis=0)
    if some.any():
        result[some] = _integral(appended[:, some])
    return result


def p_mean_about(values: Floats, times: Floats, worst: Floats) -> Floats:
    """Return the p-values of `p_mean_not_positive` fast, right to a seventh where below 0.08.

    They are the first term of the expansion at the saddle point.

    Args:
        values: (m, k).
        times: (m, k), how often each value was seen.
        worst: (k,).
    """
    appended, weights = np.vstack([values, worst]), np.vstack([times, np.ones_like(worst)])
    saddle = _saddle(appended, weights)
    spread = (weights * (appended / (1 + saddle * appended)) ** 2).sum(axis=0) + 1 / saddle**2
    height = np.exp(-(weights * np.log1p(saddle * appended)).sum(axis=0)) / saddle
    return np.asarray(np.clip(height / np.sqrt(2 * np.pi * spread), 0.0, 1.0))


def _integral(values: Floats) -> Floats:
    """Return P(sum of E_i values_i <= 0), (k,), for independent exponential E_i: such weights, without their sum.

    The transform of that sum is the product of 1 / (1 + z values_i). It is inverted along the line through the saddle
    point (Daniels 1954, "Saddlepoint Approximations in Statistics"), on which it falls off fastest.
    """
    saddle = _saddle(values, np.ones_like(values))
    slopes = values / (1 + saddle * values)
    width = 1 / np.sqrt((slopes**2).sum(axis=0) + 1 / saddle**2)
    total = np.zeros(values.shape[1])
    for step in range(_N_STEPS):
        height = width * np.sinh(_STEP * step)
        fallen = np.log1p((height * slopes) ** 2).sum(axis=0) / 2 + np.log(np.hypot(1, height / saddle))
        if fallen.min() > _NOTHING:
            break
        turned = np.arctan(height * slopes).sum(axis=0) + np.arctan(height / saddle)
        part = np.exp(-fallen) * np.cos(turned) * width * np.cosh(_STEP * step)
        total += part / 2 if step == 0 else part
    at_saddle = np.exp(-np.log1p(saddle * values).sum(axis=0)) / saddle
    return np.asarray(np.clip(total * _STEP * at_saddle / np.pi, 0.0, 1.0))


def _saddle(values: Floats, times: Floats) -> Floats:
    """Return where on the real axis the integrand is least: between 0 and the pole of the worst value."""
    low, high = np.zeros(values.shape[1]), 1 / np.maximum(-values.min(axis=0), _NO_LOSS)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        falls = (times * (values / (1 + middle * values))).sum(axis=0) + 1 / middle > 0
        low, high = np.where(falls, middle, low), np.where(falls, high, middle)
    return np.asarray((low + high) / 2)
