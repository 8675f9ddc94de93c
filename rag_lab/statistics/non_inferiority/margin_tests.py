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

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from rag_lab.statistics.corrections import hommel
from rag_lab.statistics.non_inferiority.margin_samples import NotWorse, Weights, margin_samples
from rag_lab.statistics.per_question import Clusters, frame
from rag_lab.statistics.scales import Scale
from rag_lab.statistics.verdict import ALPHA

ANSWER_COLUMNS = ("n", "n_failed", "difference", "margin", "p_value", "p_corrected", "is_not_worse", "reason")
NOT_WORSE_COLUMNS = ("contrast", "metric", *ANSWER_COLUMNS)
BEST_COLUMNS = ("variant_id", "metric", "against", *ANSWER_COLUMNS)


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
        metric
        n: questions that all variants with a weight have a score of, or failed on; all that follows is over these
        n_failed: of these, questions on which one of them failed
        difference: its mean, failures of variants with a positive weight at the worst value, of the others at the best
        margin: of the metric
        p_value, p_corrected: one-sided (see `p_not_worse`); Hommel's over the contrasts, within the metric
        is_not_worse: whether p_corrected is below 0.05
        reason: why there is no p-value, else ""

    Args:
        scores: the table, as for `summary`.
        contrasts: key to weights of variants that add up to zero, positive for what would be taken: a main effect of
            a grid, or a variant against another.
        margins: metric to the largest mean loss that would be accepted. A metric of which there are no scores is left
            out.
        clusters: question_id to cluster; a cluster is one unit.
        scales: by metric; see `scales_of`.

    Raises:
        ConfigError: if a margin is not positive or wider than the range of its metric, or a column is missing.
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

    Raises:
        ConfigError: as `not_worse`.
    """
    rows: list[tuple[Any, ...]] = []
    for metric, sample in margin_samples(scores, margins, scales, clusters).items():
        against: list[Any] = []
        answers: list[NotWorse] = []
        for variant in variants:
            rivals = [other for other in variants if other != variant and sample.has_score(other)]
            others = {rival: sample.answer({variant: 1.0, rival: -1.0}) for rival in rivals}
            worst = max(others, key=lambda other: _hardness(others[other]), default=None)
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


def _hardness(one: NotWorse) -> float:
    """Order answers by how little they show; nothing is shown where there is no p-value."""
    return 2.0 if one.p_value is None else one.p_value
