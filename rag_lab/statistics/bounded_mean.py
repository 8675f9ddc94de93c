"""Tests of the mean of bounded values: of values that are all there, and of values that are still coming.

Of values that are all there, the test allows for values which are possible and were not seen. Gaffke (2005), "Three
Test Statistics for a Nonparametric One-Sided Hypothesis on the Mean of a Nonnegative Variable"; Learned-Miller and
Thomas (2019), "A New Confidence Interval for the Mean of a Bounded Random Variable", put it as an interval. The worst
possible value is appended to those that were seen, and all are weighed at random, with weights from the uniform
distribution on those that add up to one: the p-value is the chance that the weighed mean is not above zero. Where
values are all or nothing it is the exact binomial test; where they are many and alike, Student's.

Of values that are still coming, `lower_bound` holds at all looks at once, so that one may stop as soon as it shows
enough. Against the claim that a mean is at most m, a gambler stakes a part of what they have on each value before it is
seen. If the claim is true, what they have is not expected to grow: that it ever grows to 1 / error has a chance of
`error` at most (Ville's inequality), however often one looks. The bound is the largest m that was refuted so. Source:
Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting", section 4; here stakes are
sized for the looks that are planned, and what the gambler has is the mean over these sizes.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_STEP, _N_STEPS = 0.14, 50  # of the integral; p-values above 1e-4 are right to half a hundredth of themselves
_NO_LOSS = 1e-9  # the worst value of a column that has none below zero
_NOTHING = 30.0  # what has fallen by exp(-30) adds nothing
Floats = npt.NDArray[np.float64]
_MOST_STAKED = 0.75  # of what the gambler has
_VARIANCE = 1 / 16  # of the first value, before anything is seen


def p_mean_not_positive(values: Floats, worst: Floats) -> Floats:
    """Return for each column of `values`, (m, k), the one-sided p-value of its mean being zero or less, (k,).

    Values are independent down each column; `worst`, (k,), is the least value that is possible, below zero. The weights
    are independent exponential numbers without their sum. The transform of the weighed sum is the product of
    1 / (1 + z value). It is inverted along the line through the saddle point (Daniels 1954, "Saddlepoint Approximations
    in Statistics"), on which it falls off fastest.
    """
    appended = np.vstack([values, worst])
    result = np.ones(appended.shape[1])
    some = (appended > 0).any(axis=0)
    if not some.any():
        return result
    weighed = appended[:, some]
    saddle = _saddle(weighed, np.ones_like(weighed))
    slopes = weighed / (1 + saddle * weighed)
    width = 1 / np.sqrt((slopes**2).sum(axis=0) + 1 / saddle**2)
    total = np.zeros(weighed.shape[1])
    for step in range(_N_STEPS):
        height = width * np.sinh(_STEP * step)
        fallen = np.log1p((height * slopes) ** 2).sum(axis=0) / 2 + np.log(np.hypot(1, height / saddle))
        if fallen.min() > _NOTHING:
            break
        turned = np.arctan(height * slopes).sum(axis=0) + np.arctan(height / saddle)
        part = np.exp(-fallen) * np.cos(turned) * width * np.cosh(_STEP * step)
        total += part / 2 if step == 0 else part
    at_saddle = np.exp(-np.log1p(saddle * weighed).sum(axis=0)) / saddle
    result[some] = np.clip(total * _STEP * at_saddle / np.pi, 0.0, 1.0)
    return result


def p_not_worse(sums: Floats, counts: Floats, margin: float, reach: float) -> Floats:
    """Return the one-sided p-values, (k,), of "the mean is not below -margin", with one unit at the worst appended.

    Of clusters the appended one has the size of the cluster in which the average question is: of the average size, lost
    large clusters were missed too often where sizes differ. `sums`, (m, k), are of the differences of each unit, more
    being better, in k contrasts on the same units, `counts`, (m,), their numbers; `reach` is the largest difference of
    a question.
    """
    if len(counts) < 2:
        raise ValueError(f"the test needs at least 2 units, got {len(counts)}")
    size = (counts**2).sum() / counts.sum()
    return p_mean_not_positive(sums + margin * counts[:, None], np.full(sums.shape[1], (margin - reach) * size))


def p_mean_about(values: Floats, times: Floats, worst: Floats) -> Floats:
    """Return the p-values of `p_mean_not_positive` fast, right to a seventh where below 0.08.

    They are the first term of the expansion at the saddle point; `times`, (m, k), is how often each value was seen.
    """
    appended, weights = np.vstack([values, worst]), np.vstack([times, np.ones_like(worst)])
    saddle = _saddle(appended, weights)
    spread = (weights * (appended / (1 + saddle * appended)) ** 2).sum(axis=0) + 1 / saddle**2
    height = np.exp(-(weights * np.log1p(saddle * appended)).sum(axis=0)) / saddle
    return np.asarray(np.clip(height / np.sqrt(2 * np.pi * spread), 0.0, 1.0))


def _saddle(values: Floats, times: Floats) -> Floats:
    """Return where on the real axis the integrand is least: between 0 and the pole of the worst value."""
    low, high = np.zeros(values.shape[1]), 1 / np.maximum(-values.min(axis=0), _NO_LOSS)
    for _ in range(26):
        middle = (low + high) / 2
        falls = (times * (values / (1 + middle * values))).sum(axis=0) + 1 / middle > 0
        low, high = np.where(falls, middle, low), np.where(falls, high, middle)
    return np.asarray((low + high) / 2)


def lower_bound(values: Sequence[float] | Floats, reach: float, error: float, looks: Sequence[int]) -> float:
    """Return what the mean is above, with all bounds at earlier looks: `-reach` where nothing is known.

    `values`, (n,), are independent, in the order in which they came, none further from zero than `reach`. `error` is
    the chance that any bound, at any look, is above the mean; `looks` say after how many values one means to look: that
    one looks at other times, too, does no harm.
    """
    shares = _shares(values, reach)
    sizes = _sizes(shares, error, looks)
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _is_refuted(shares, sizes, middle, error) else (low, middle)
    return float((2 * low - 1) * reach)


def is_above(values: Sequence[float] | Floats, mean: float, reach: float, error: float, looks: Sequence[int]) -> bool:
    """Tell whether the bound is above `mean`, which is quicker than to ask for the bound; see `lower_bound`."""
    shares = _shares(values, reach)
    return _is_refuted(shares, _sizes(shares, error, looks), (mean / reach + 1) / 2, error)


def _shares(values: Sequence[float] | Floats, reach: float) -> Floats:
    """Return the values as shares of their range."""
    found = np.asarray(values, dtype=np.float64)
    if not (np.abs(found) <= reach * (1 + 1e-9)).all():
        raise ValueError(f"values must be finite and between {-reach} and {reach}")
    return np.clip((found / reach + 1) / 2, 0, 1)


def _sizes(shares: Floats, error: float, looks: Sequence[int]) -> Floats:
    """Return (looks, n): how much is staked on each value, which depends on those before it alone."""
    n = np.arange(1, len(shares) + 1)
    means = (0.5 + np.cumsum(shares)) / (n + 1)
    variances = (_VARIANCE + np.cumsum((shares - means) ** 2)) / (n + 1)
    before = np.concatenate([[_VARIANCE], variances[:-1]])[: len(shares)]
    sizes: Floats = np.sqrt(2 * np.log(1 / error) / (before * np.asarray(looks, dtype=np.float64)[:, None]))
    return sizes


def _is_refuted(shares: Floats, sizes: Floats, mean: float, error: float) -> bool:
    """Tell whether the claim that the mean of the shares is at most `mean` was ever refuted."""
    won = np.log1p(np.minimum(sizes, _MOST_STAKED / mean) * (shares - mean)).cumsum(axis=1)
    return bool(np.logaddexp.reduce(won, axis=0).max(initial=-np.inf) - np.log(len(sizes)) >= np.log(1 / error))
