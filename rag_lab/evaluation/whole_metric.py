"""A whole `Metric` that somebody brought: what it does wrong costs the traces that it does it to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_lab._kit.own_code import OwnCode, OwnCodeError
from rag_lab.evaluation.metric import Gap, MetricInfo, Needs
from rag_lab.memory.results import batches
from rag_lab.records import Score, Trace

_BATCH = 32


@dataclass(frozen=True)
class WholeMetric:
    """Its `score` is called; a batch that fails as a whole is scored again trace by trace."""

    info: MetricInfo
    code: OwnCode

    @property
    def name(self) -> str:
        """As tables say it."""
        return self.info.name

    @property
    def needs(self) -> Needs:
        """What it says that a trace must have."""
        return self.info.needs

    def identity(self) -> Mapping[str, Any]:
        """Return its own, and the digest of its source."""
        return {"metric": self.name, "code": self.code.identity()}

    def score(self, traces: Sequence[Trace]) -> list[Score]:
        """Return one score for each trace, in order."""
        return [score for batch in batches(traces, _BATCH) for score in self._score(batch)]

    def _score(self, traces: list[Trace]) -> list[Score]:
        try:
            scores: list[Score] = self.code.call(traces, accept=lambda given: self._accepted(given, traces))
        except OwnCodeError as error:
            if len(traces) == 1:
                return [Gap("failed", str(error)).to_score(traces[0], self.name)]
            return [score for trace in traces for score in self._score([trace])]
        return scores

    def _accepted(self, given: Any, traces: Sequence[Trace]) -> list[Score]:
        scores = list(given) if isinstance(given, Sequence) else [given]
        if strangers := [type(score).__name__ for score in scores if not isinstance(score, Score)]:
            raise OwnCodeError(f"the {self.code.what} returned {strangers[0]} where a Score is due")
        due = [(trace.question.question_id, trace.repeat, self.name) for trace in traces]
        if [(score.question_id, score.repeat, score.metric) for score in scores] != due:
            raise OwnCodeError(f"the {self.code.what} returned other scores than one for each trace, in order")
        for score in scores:
            is_number = isinstance(score.value, int | float) and math.isfinite(score.value)
            if is_number != (score.status == "scored") or (not is_number and score.value is not None):
                raise OwnCodeError(f"the {self.code.what} gave {score.value!r:.60} and called it {score.status}")
        return scores
