"""Means of people's labels, of which there are few, made narrower by a judge's scores, which stand on every question.

Prediction-powered inference (Angelopoulos, Duchi and Zrnic 2023, "PPI++: Efficient Prediction-Powered Inference",
sections 2 and 6): the mean of the judge's scores, times a weight, and the mean of what the labels differ from that. The
weight is estimated so that the interval is narrowest, and is zero where the judge says nothing. So the interval is
valid however bad the judge is. Questions are drawn for labels within strata (Fisch et al. 2024, "Stratified
Prediction-Powered Inference", section 3); one that is labelled as a whole has no error of drawing.

The variance is that of what each question adds, over clusters where there are any. A residual of a labelled question is
divided by sqrt(1 - leverage) (HC2, MacKinnon and White 1985), as weight and means were fitted to it. Labels of 0 and 1
leave much unseen where they are few: the residuals get a share of one more question that differs as far as one can,
times what the judge does not explain (`benchmarks/judge_correction.py` measures the coverage).
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

Floats = npt.NDArray[np.float64]
FEWEST = 10  # labelled questions for an interval
_UNSEEN = 0.8  # of a question
_MOST_LEVERAGE = 0.9


@dataclass(frozen=True, slots=True)
class Corrected:
    """A mean of labels with its 95% interval; None where too few questions are labelled."""

    mean: float | None
    low: float | None
    high: float | None
    weight: float  # of the judge's scores; 0 where labels stand alone
    n_labelled: int  # without questions of strata that are labelled as a whole
    n_questions: int
    of_questions: float = 0.0  # the part of the variance that more questions would make less
    of_labels: float = 0.0  # that which more labels would

    @property
    def is_settled(self) -> bool:
        """Whether the interval lies on one side of zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    def labels_needed(self) -> int | None:
        """Return how many labels make the interval leave out zero, if the mean stays; None where not even all would."""
        n, size = self.n_labelled, self.n_questions
        for more in range(n, size + 1) if self.mean is not None and self.low is not None else ():
            left = self.of_labels * n / more * (1 - more / size) / (1 - n / size) if n < size else 0.0
            if float(stdtrit(max(1, more - 2), 0.975)) ** 2 * (self.of_questions + left) < (self.mean or 0.0) ** 2:
                return more
        return None


def corrected_mean(
    scores: Sequence[float] | Floats,
    labels: Sequence[float | None] | Floats,
    reach: float,
    strata: Sequence[Hashable] | None = None,
    clusters: Sequence[Hashable] | None = None,
    weight: float | None = None,
) -> Corrected:
    """Return the mean of labels over all questions, with what the judge's scores say of those without a label.

    Args:
        scores: (n,) of the judge, in any unit: of a variant, or differences of two.
        labels: (n,) None or NaN where nobody labelled; within a stratum, questions must have been drawn at random.
        reach: how far a label can lie from the middle of its range: 0.5 of labels of 0 and 1, 1 of their differences.
        strata: (n,) the group from which each question was drawn; one group where None.
        clusters: (n,) groups of questions that are not independent.
        weight: of the scores; estimated where None; 0 for labels alone.
    """
    f = np.asarray(scores, dtype=np.float64)
    y = np.asarray([math.nan if one is None else one for one in labels], dtype=np.float64)
    has, size = np.isfinite(y), len(f)
    stratum = _numbers(strata, size)
    drawn, whole = np.bincount(stratum[has], minlength=stratum.max(initial=0) + 1), np.bincount(stratum)
    is_open = (drawn < whole)[stratum]  # questions of strata that are not labelled as a whole
    part = has & is_open
    n = int(part.sum())
    if not has.any() or (drawn == 0).any():
        return Corrected(None, None, None, 0.0, n, int(is_open.sum()))
    some = np.maximum(drawn, 1)

    def centred(values: Floats) -> Floats:
        """Return the values of labelled questions of open strata less the mean of their stratum."""
        means: Floats = np.bincount(stratum[part], values[part], len(whole)) / some
        return values[part] - means[stratum[part]]

    # What a question adds to the variance, by its stratum: (share of the questions)^2 / drawn^2, without those drawn.
    size_of = (whole / size) ** 2 / some**2 * (1 - drawn / whole)
    weighs, off_f, off_y = size_of[stratum[part]], centred(f), centred(y)
    if n and not off_f.any():  # as where a judge sees one difference in each stratum: between them it says something
        off_f, off_y = f[part] - f[part].mean(), y[part] - y[part].mean()
    squares, product = float((weighs * off_f**2).sum()), float((weighs * off_f * off_y).sum())
    is_fitted = weight is None and n > 2 and squares > 1e-12 and product != 0
    used = weight or 0.0
    if is_fitted:  # shrunk by what chance alone would fit, so that a judge that says nothing does no harm
        share = min(1.0, product**2 / squares / float((weighs * off_y**2).sum()))
        used = product / squares * max(0.0, 1 - (1 - share) / ((n - 2) * share))
        is_fitted = used != 0
    rest = np.where(has, y - used * f, 0.0)
    means = np.bincount(stratum[has], rest[has], len(whole)) / some
    expected = used * f + means[stratum]  # of a question, before its label is read
    mean = float(expected.mean())
    leverage = 1 / some[stratum[part]] + (weighs * off_f**2 / squares if is_fitted else 0.0)
    off = centred(rest) / np.sqrt(1 - np.minimum(leverage, _MOST_LEVERAGE))
    influence = expected - mean
    influence[has & ~is_open] = y[has & ~is_open] - mean
    influence[part] += off * (whole / some)[stratum[part]]
    groups = _numbers(range(size) if clusters is None else clusters, size)
    n_groups, n_labelled_groups = len(np.unique(groups)), len(np.unique(groups[part]))
    sums = np.bincount(groups, influence)
    freedom = min(n - len(np.unique(stratum[part])), n_labelled_groups - 1) - is_fitted if n else n_groups - 1
    if n_groups < 2 or freedom < 1 or has.sum() < FEWEST:
        return Corrected(mean, None, None, used, n, int(is_open.sum()))
    spread = float((off_y**2).sum())
    unexplained = min(1.0, float((centred(rest) ** 2).sum()) / spread) if spread > 0 else float(used == 0.0)
    unseen = _UNSEEN * reach**2 * unexplained / max(1, n - 1)
    guard = unseen * float((size_of * some)[drawn < whole].sum())
    of_labels = float((weighs * off**2).sum()) + guard
    variance = n_groups / (n_groups - 1) * float((sums**2).sum()) / size**2 + guard
    half = float(stdtrit(freedom, 0.975)) * math.sqrt(variance)
    of_questions = max(0.0, variance - of_labels)
    return Corrected(mean, mean - half, mean + half, used, n, int(is_open.sum()), of_questions, of_labels)


def _numbers(names: Sequence[Hashable] | None, size: int) -> npt.NDArray[np.int64]:
    """Return a number from 0 for each name, in order of first appearance."""
    known: dict[Hashable, int] = {}
    return np.array(
        [known.setdefault(name, len(known)) for name in ([None] * size if names is None else names)], dtype=np.int64
    )
