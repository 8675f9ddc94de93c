"""The scores of a metric with a margin, failures at the ends of its range, and the test of one contrast of them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rag_lab._kit.numbers import plain
from rag_lab.errors import ConfigError
from rag_lab.statistics.non_inferiority.bounded_mean import p_mean_not_positive
from rag_lab.statistics.per_question import Clusters, cluster_labels, per_question, with_failures_at
from rag_lab.statistics.planning.reruns import questions_for_margin
from rag_lab.statistics.resampled_units import Units, units
from rag_lab.statistics.scales import Scale, scales_of

Floats = npt.NDArray[np.float64]
Weights = Mapping[Any, float]  # variant_id to its weight; they add up to zero


@dataclass(frozen=True, slots=True)
class NotWorse:
    """The answer for one contrast: the one-sided p-value of "not worse by more than the margin", or why there is none.

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
    """Return the one-sided p-values of "the mean is not below -margin", with one unit at the worst difference appended.

    Of clusters the appended one has the size of the cluster in which the average question is: of the average size,
    lost large clusters were missed too often where sizes differ.

    Args:
        sums: (m, k), the sum of the differences of each unit, more being better; k contrasts on the same units.
        counts: (m,), the number of differences of each unit.
        margin: the largest mean loss that would be accepted, above 0.
        reach: the largest possible difference of one question.

    Returns:
        (k,) p-values.

    Raises:
        ValueError: with fewer than two units.
    """
    if len(counts) < 2:
        raise ValueError(f"the test needs at least 2 units, got {len(counts)}")
    size = (counts**2).sum() / counts.sum()
    return p_mean_not_positive(sums + margin * counts[:, None], np.full(sums.shape[1], (margin - reach) * size))


@dataclass(frozen=True, slots=True)
class MarginSample:
    """The scores of one metric as (questions, variants): with failures at the worst and at the best value.

    Both are NaN where a question was not judged.
    """

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
        used = {variant: weight for variant, weight in weights.items() if weight}
        if reason := self._problem(used):
            return NotWorse(0, 0, None, self.margin, None, reason)
        column, n_failed = self._column(used)
        return self._tested(column, n_failed, self._reach(used))

    def planned(self, weights: Weights, n_tests: int) -> int | None:
        """Return how many questions, or clusters, would show it if nothing differed; None where that is unknown."""
        used = {variant: weight for variant, weight in weights.items() if weight}
        if self._problem(used):
            return None
        column, _ = self._column(used)
        if len(column.sums) < 2:
            return None
        return questions_for_margin(column, self.margin, self._reach(used), n_tests)

    def _reach(self, used: Weights) -> float:
        return sum(weight for weight in used.values() if weight > 0) * (self.scale.width or 0.0)

    def _column(self, used: Weights) -> tuple[Units, int]:
        """Return the differences of each unit, more being better, and on how many questions something failed."""
        ours = {self.columns[variant]: weight for variant, weight in used.items()}
        values = sum(weight * (self.worst if weight > 0 else self.best)[:, at] for at, weight in ours.items())
        differences = np.asarray(values, dtype=np.float64) * self.scale.sign
        judged = np.isfinite(differences)
        groups = None if self.clusters is None else [self.clusters[row] for row in np.flatnonzero(judged)]
        n_failed = int(self.failed[:, list(ours)][judged].any(axis=1).sum())
        return units(differences[judged], groups), n_failed

    def has_score(self, variant: Any) -> bool:
        """Tell whether any question of the variant was scored; one without is no rival, and not the best."""
        return variant in self.columns and bool(self.scored[:, self.columns[variant]].any())

    def _tested(self, column: Units, n_failed: int, reach: float) -> NotWorse:
        m, n = len(column.sums), column.n
        mean = self.scale.sign * column.mean if n else None
        if m < 2:
            what = f"{n} questions in one cluster" if n > 1 else "one question" if n else "no question"
            return NotWorse(n, n_failed, mean, self.margin, None, f"{what} cannot show that a loss is small")
        p_value = p_not_worse(column.sums[:, None], column.counts, self.margin, reach)[0]
        return NotWorse(n, n_failed, mean, self.margin, float(p_value))

    def _problem(self, used: Weights) -> str:
        """Return why nothing can be tested, or ''."""
        if absent := [str(variant) for variant in used if variant not in self.columns]:
            return f"{', '.join(absent)} has no score"
        if self.scale.width is None:
            return "the metric has no worst or no best value, so nobody can say how large a loss was missed"
        return ""


def margin_samples(
    scores: pd.DataFrame,
    margins: Mapping[Any, float],
    scales: Mapping[Any, Scale] | None,
    clusters: Clusters | None,
) -> dict[Any, MarginSample]:
    """Return the scores of each metric that has a margin, in the order of the margins."""
    questions = per_question(scores, list(margins))
    ranges = scales_of(scores, scales)
    for metric, margin in margins.items():
        if metric in ranges:
            _check(metric, margin, ranges[metric])
    return {
        metric: _sample(questions[questions["metric"] == metric], ranges[metric], margin, clusters)
        for metric, margin in margins.items()
        if metric in ranges
    }


def _sample(rows: pd.DataFrame, scale: Scale, margin: float, clusters: Clusters | None) -> MarginSample:
    cells = rows.assign(worst=with_failures_at(rows, scale.worst), best=with_failures_at(rows, scale.best))
    wide = {
        name: cells.pivot(index="question_id", columns="variant_id", values=name) for name in ("worst", "best", "lost")
    }
    worst, best, lost = (table.to_numpy(dtype=np.float64) for table in wide.values())
    labels = None if clusters is None else cluster_labels(wide["lost"].index, clusters)
    places = {variant: place for place, variant in enumerate(wide["lost"].columns)}
    return MarginSample(places, worst, best, lost > 0, lost < 1, labels, scale, margin)


def _check(metric: Any, margin: float, scale: Scale) -> None:
    if not margin > 0 or (scale.width is not None and margin > scale.width):
        most = "" if scale.width is None else f" and at most {plain(scale.width)}, the metric's range"
        raise ConfigError(
            f"The margin of {metric} is {margin}; it is the largest mean loss that you would accept, above 0{most}."
        )
