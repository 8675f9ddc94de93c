"""Hypotheses about scores: that a weighted sum of some variants' scores is zero on average over the questions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rag_lab.statistics.intervals import TIE
from rag_lab.statistics.per_question import with_failures_at
from rag_lab.statistics.scales import SHARE, Scale

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """That sum(weight * score) of a metric is zero on average over questions; it may be false.

    weights: (variant, weight). A variant with weight 0 adds nothing, but a question counts only where it has a score:
        so all effects of a design are about the same questions.
    questions: of which questions; None for all.
    is_primary: whether the experiment was made to test it, said before it ran.
    """

    metric: Any
    weights: tuple[tuple[Any, float], ...]
    questions: frozenset[Any] | None = None
    is_primary: bool = False

    @classmethod
    def of_pair(cls, metric: Any, variant: Any, against: Any, is_primary: bool = False) -> Hypothesis:
        """Return that `variant` scores like `against`."""
        return cls(metric, ((variant, 1.0), (against, -1.0)), is_primary=is_primary)

    @property
    def unsigned(self) -> tuple[tuple[Any, float], ...]:
        """The weights that count, sorted, the first of them positive: a - b and b - a are one comparison."""
        weighed = sorted(((variant, weight) for variant, weight in self.weights if weight), key=lambda one: str(one[0]))
        sign = 1.0 if not weighed or weighed[0][1] > 0 else -1.0
        return tuple((variant, sign * weight) for variant, weight in weighed)

    @property
    def squares(self) -> float:
        """The sum of the squared weights: what the noise of single scores is multiplied with."""
        return sum(weight**2 for _, weight in self.weights)

    @property
    def reach(self) -> float:
        """What the sum can be at most, in widths of the metric's range."""
        return sum(weight for _, weight in self.weights if weight > 0)


@dataclass(frozen=True, slots=True)
class Sample:
    """The weighted sums that a hypothesis is about, one a question.

    values: where every variant has a score, (n,) in the order of `questions`.
    filled: the same with failures at the worst value, over all questions asked; empty where the metric has no worst.
    n_failed: questions in which something failed that counts.
    key: the same for two hypotheses that are one comparison of the same questions.
    """

    questions: tuple[Any, ...]
    values: Floats
    asked: tuple[Any, ...]
    filled: Floats
    n_failed: int
    key: Hashable


class ScoreTable:
    """The scores of one metric as questions x variants, from the rows of `per_question`; sorted by name."""

    def __init__(self, rows: pd.DataFrame, scale: Scale = SHARE) -> None:
        order = sorted(set(rows["question_id"]), key=str)
        self._row = {question: place for place, question in enumerate(order)}
        self.questions = np.array(order, dtype=object)
        self._column = {variant: place for place, variant in enumerate(sorted(set(rows["variant_id"]), key=str))}
        where = rows["question_id"].map(self._row).to_numpy(), rows["variant_id"].map(self._column).to_numpy()
        self.mean = self._spread(rows["mean"], where)
        self.lost = self._spread(rows["lost"], where)
        worst = scale.worst
        self.filled = None if worst is None else self._spread(with_failures_at(rows, worst), where)

    def _spread(self, column: pd.Series[float], where: tuple[Any, Any]) -> Floats:
        table = np.full((len(self._row), len(self._column)), np.nan)
        table[where] = column.to_numpy(dtype=float)
        return table

    def sample(self, hypothesis: Hypothesis) -> Sample:
        """Return what a hypothesis is about; without any question where a variant has no scores at all."""
        variants = sorted(hypothesis.weights, key=lambda one: str(one[0]))
        if any(variant not in self._column for variant, _ in variants):
            nothing = np.zeros(0)
            return Sample((), nothing, (), nothing, 0, (hypothesis.metric, hypothesis.unsigned, b""))
        columns = np.array([self._column[name] for name, _ in variants], dtype=np.int64)
        weights = np.array([weight for _, weight in variants])
        among = self._among(hypothesis.questions)
        scored = among[~np.isnan(self.mean[np.ix_(among, columns)]).any(axis=1)]
        asked = among[~np.isnan(self.lost[np.ix_(among, columns)]).any(axis=1)]
        n_failed = int((self.lost[np.ix_(asked, columns[weights != 0])] > 0).any(axis=1).sum())
        filled = np.zeros(0) if self.filled is None else _exact(self.filled[np.ix_(asked, columns)] @ weights)
        key = (hypothesis.metric, hypothesis.unsigned, scored.tobytes())
        values = _exact(self.mean[np.ix_(scored, columns)] @ weights)
        return Sample(tuple(self.questions[scored]), values, tuple(self.questions[asked]), filled, n_failed, key)

    def _among(self, questions: frozenset[Any] | None) -> npt.NDArray[np.int64]:
        if questions is None:
            return np.arange(len(self._row))
        return np.array(sorted(self._row[one] for one in questions if one in self._row), dtype=np.int64)


def _exact(values: Floats) -> Floats:
    return np.where(np.abs(values) <= TIE, 0.0, values)


def score_tables(questions: pd.DataFrame, scales: Mapping[Any, Scale]) -> dict[Any, ScoreTable]:
    """Return the scores of each metric, from what `per_question` returns."""
    return {
        metric: ScoreTable(rows, scales.get(metric, SHARE)) for metric, rows in questions.groupby("metric", sort=False)
    }
