"""Not worse by more than a margin: what an ablation is made for, the sentence that a module may be left out.

A test of non-inferiority asks the other way round: its null hypothesis is that the variant loses more than the margin
(Wellek 2010, "Testing Statistical Hypotheses of Equivalence and Noninferiority", chapter 1). Rare large losses are what
it must not miss: a loss of 1.0 on one question of a hundred may not be among those that were asked, and Student's test
would see no spread. So one unit more is taken to have been asked, with the worst difference that the metric allows, and
what weight it has is left open (see `bounded_mean`). With that unit but Student's distribution, 117 questions without
a loss would have p = 0.000002 at a margin of 0.05, where a loss on 5% of questions stays unseen with 0.0025: too small
for a family.

A variant's failures count at the metric's worst value, those of what it is compared with at the best. Differences are
turned so that more is better.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rag_lab._kit.wording import plain
from rag_lab.errors import ConfigError
from rag_lab.statistics.bootstrap import Floats, Units, units
from rag_lab.statistics.bounded_mean import p_mean_not_positive
from rag_lab.statistics.non_inferiority.planning import questions_for_margin
from rag_lab.statistics.per_question import Clusters, cluster_labels, frame, per_question, with_failures_at
from rag_lab.statistics.randomization import hommel
from rag_lab.statistics.scales import Scale, scales_of
from rag_lab.statistics.verdict import ALPHA

Weights = Mapping[Any, float]  # variant_id to its weight; they add up to zero
ANSWER_COLUMNS = ("n", "n_failed", "difference", "margin", "p_value", "p_corrected", "is_not_worse", "reason")
NOT_WORSE_COLUMNS = ("contrast", "metric", *ANSWER_COLUMNS)
BEST_COLUMNS = ("variant_id", "metric", "against", *ANSWER_COLUMNS)


@dataclass(frozen=True, slots=True)
class NotWorse:
    """The one-sided p-value of "not worse by more than the margin" of one contrast, or why there is none.

    `difference` is the mean with failures at the ends of the range, in the direction of the scores; `n_failed` counts
    the questions on which a variant of the contrast failed.
    """

    n: int
    n_failed: int
    difference: float | None
    margin: float
    p_value: float | None
    reason: str = ""


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


@dataclass(frozen=True, slots=True)
class MarginSample:
    """The scores of one metric, (questions, variants), with failures at the worst and the best value; else NaN."""

    columns: dict[Any, int]
    worst: Floats
    best: Floats
    failed: npt.NDArray[np.bool_]  # in any repeat
    scored: npt.NDArray[np.bool_]
    clusters: list[Hashable] | None
    scale: Scale
    margin: float

    def answer(self, weights: Weights) -> NotWorse:
        """Return whether the weighted sum is not below minus the margin on average."""
        observed = self._observed(weights)
        if isinstance(observed, str):
            return NotWorse(0, 0, None, self.margin, None, observed)
        column, reach, n_failed = observed
        n = column.n
        mean = self.scale.sign * column.mean if n else None
        if len(column.sums) < 2:
            what = f"{n} questions in one cluster" if n > 1 else "one question" if n else "no question"
            return NotWorse(n, n_failed, mean, self.margin, None, f"{what} cannot show that a loss is small")
        p_value = p_not_worse(column.sums[:, None], column.counts, self.margin, reach)[0]
        return NotWorse(n, n_failed, mean, self.margin, float(p_value))

    def planned(self, weights: Weights, n_tests: int) -> int | None:
        """Return how many questions, or clusters, would show it if nothing differed; None where that is unknown."""
        observed = self._observed(weights)
        if isinstance(observed, str) or len(observed[0].sums) < 2:
            return None
        return questions_for_margin(observed[0], self.margin, observed[1], n_tests)

    def _observed(self, weights: Weights) -> tuple[Units, float, int] | str:
        """Return the differences of each unit, more being better, how large one can be, and on how many questions
        something failed; or why nothing can be tested.
        """
        if absent := [str(variant) for variant, weight in weights.items() if weight and variant not in self.columns]:
            return f"{', '.join(absent)} has no score"
        if self.scale.width is None:
            return "the metric has no worst or no best value, so nobody can say how large a loss was missed"
        ours = {self.columns[variant]: weight for variant, weight in weights.items() if weight}
        values = sum(weight * (self.worst if weight > 0 else self.best)[:, at] for at, weight in ours.items())
        differences = np.asarray(values, dtype=np.float64) * self.scale.sign
        judged = np.isfinite(differences)
        groups = None if self.clusters is None else [self.clusters[row] for row in np.flatnonzero(judged)]
        n_failed = int(self.failed[:, list(ours)][judged].any(axis=1).sum())
        reach = sum(weight for weight in ours.values() if weight > 0) * self.scale.width
        return units(differences[judged], groups), reach, n_failed


def margin_samples(
    scores: pd.DataFrame, margins: Mapping[Any, float], scales: Mapping[Any, Scale] | None, clusters: Clusters | None
) -> dict[Any, MarginSample]:
    """Return the scores of each metric that has a margin, in the order of the margins."""
    questions, ranges = per_question(scores, list(margins)), scales_of(scores, scales)
    found: dict[Any, MarginSample] = {}
    for metric, margin in margins.items():
        if metric not in ranges:
            continue
        scale = ranges[metric]
        if not margin > 0 or (scale.width is not None and margin > scale.width):
            most = "" if scale.width is None else f" and at most {plain(scale.width)}, the metric's range"
            raise ConfigError(
                f"The margin of {metric} is {margin}; it is the largest mean loss that you would accept, above 0{most}."
            )
        rows = questions[questions["metric"] == metric]
        cells = rows.assign(worst=with_failures_at(rows, scale.worst), best=with_failures_at(rows, scale.best))
        wide = cells.pivot(index="question_id", columns="variant_id", values=["worst", "best", "lost"])
        worst, best, lost = (wide[name].to_numpy(dtype=np.float64) for name in ("worst", "best", "lost"))
        labels = None if clusters is None else cluster_labels(wide.index, clusters)
        places = {variant: place for place, variant in enumerate(wide["lost"].columns)}
        found[metric] = MarginSample(places, worst, best, lost > 0, lost < 1, labels, scale, margin)
    return found


def not_worse(
    scores: pd.DataFrame,
    contrasts: Mapping[Any, Weights],
    margins: Mapping[Any, float],
    *,
    clusters: Clusters | None = None,
    scales: Mapping[Any, Scale] | None = None,
) -> pd.DataFrame:
    """Tell for each contrast and metric with a margin whether its mean is not worse by more than the margin.

    Columns:
        contrast: the key; `pairs` makes those of two variants, (variant, against)
        n: questions that all variants with a weight have a score of, or failed on; all that follows is over these
        n_failed: of these, questions on which one of them failed
        difference: its mean, failures of variants with a positive weight at the worst value, of the others at the best
        p_value, p_corrected: one-sided (see `p_not_worse`); Hommel's over the contrasts, within the metric
        is_not_worse: whether p_corrected is below 0.05
        reason: why there is no p-value, else ""

    Args:
        scores: the table, as for `summary`.
        contrasts: key to weights of variants that add up to zero, positive for what would be taken: a main effect of
            a grid, or a variant against another.
        margins: metric to the largest mean loss that would be accepted; a metric without scores is left out.
        clusters: question_id to cluster; a cluster is one unit.
        scales: by metric; see `scales_of`.
    """
    rows: list[tuple[Any, ...]] = []
    for metric, sample in margin_samples(scores, margins, scales, clusters).items():
        found = {key: sample.answer(weights) for key, weights in contrasts.items()}
        rows += [(key, metric, *rest) for key, rest in zip(found, _corrected(list(found.values())), strict=True)]
    return frame(rows, NOT_WORSE_COLUMNS)


def questions_needed(
    scores: pd.DataFrame,
    contrasts: Mapping[Any, Weights],
    metric: Any,
    margin: float,
    n_tests: int,
    *,
    clusters: Clusters | None = None,
    scales: Mapping[Any, Scale] | None = None,
) -> dict[Any, int | None]:
    """Return for each contrast how many questions, or clusters, would show it with power 0.8 if nothing differed.

    From the spread of these scores; None where more than 20,000, or where nothing can be tested. `n_tests` is the size
    of the family; for the rest see `not_worse`.
    """
    sample = margin_samples(scores, {metric: margin}, scales, clusters).get(metric)
    if sample is None:
        return {}
    return {key: sample.planned(weights, n_tests) for key, weights in contrasts.items()}


def not_worse_than_best(
    scores: pd.DataFrame,
    variants: Sequence[Any],
    margins: Mapping[Any, float],
    *,
    clusters: Clusters | None = None,
    scales: Mapping[Any, Scale] | None = None,
) -> pd.DataFrame:
    """Tell for each variant and metric with a margin whether it is not worse than the best by more than the margin.

    Which variant is the best is not known, so a variant must be shown to be not worse than each of the others: the
    p-value is the largest of these (intersection-union, Berger 1982, "Multiparameter Hypothesis Testing and Acceptance
    Sampling"), without a correction for their number; those of the candidates are corrected by Hommel's procedure
    within the metric. Hsu (1984), "Constrained Simultaneous Confidence Intervals for Multiple Comparisons with the
    Best", asks the same.

    Columns: as `not_worse`, with `variant_id`, and `against`, the variant that it is least clearly not worse than, of
    which the numbers are. A variant without any score is no rival to the others.
    """
    rows: list[tuple[Any, ...]] = []
    for metric, sample in margin_samples(scores, margins, scales, clusters).items():
        against: list[Any] = []
        answers: list[NotWorse] = []
        scored = [one for one in variants if one in sample.columns and sample.scored[:, sample.columns[one]].any()]
        for variant in variants:
            rivals = [other for other in scored if other != variant]
            others = {rival: sample.answer({variant: 1.0, rival: -1.0}) for rival in rivals}
            # The one that shows least; nothing is shown where there is no p-value.
            worst = max(others, key=lambda other: 2.0 if (p := others[other].p_value) is None else p, default=None)
            against.append(worst)
            alone = NotWorse(0, 0, None, sample.margin, None, "there is no other variant to compare it with")
            answers.append(alone if worst is None else others[worst])
        corrected = _corrected(answers)
        rows += [(v, metric, a, *rest) for v, a, rest in zip(variants, against, corrected, strict=True)]
    return frame(rows, BEST_COLUMNS)


def pairs(keys: Iterable[tuple[Any, Any]]) -> dict[Any, Weights]:
    """Return the contrast of each (variant, against), under that key."""
    return {(variant, against): {variant: 1.0, against: -1.0} for variant, against in keys}


def _corrected(found: Sequence[NotWorse]) -> list[tuple[Any, ...]]:
    """Return the values of ANSWER_COLUMNS of one family."""
    corrected = hommel([one.p_value for one in found])
    return [
        (one.n, one.n_failed, one.difference, one.margin, one.p_value, p, p is not None and p < ALPHA, one.reason)
        for one, p in zip(found, corrected, strict=True)
    ]
