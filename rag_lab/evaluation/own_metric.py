"""A metric of one's own: `(trace) -> float`, `(float, reason)`, or None where there is no value.

It is a function, or a frozen dataclass with `__call__`. Parameters named `judge` and `embedder` are given these models.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from pydantic import TypeAdapter

from rag_lab._kit.opened_files import unwatched
from rag_lab._kit.own_code import OwnCode, OwnCodeError
from rag_lab._kit.registry import Module
from rag_lab.evaluation.judge.remembered_judge import RememberedJudge
from rag_lab.evaluation.judge.replies import JudgeReplies
from rag_lab.evaluation.metric import Gap, Metric, MetricInfo, Needs, Tools, find_gap, model_name
from rag_lab.evaluation.own_info import is_whole, models_asked
from rag_lab.evaluation.remembered_whole import trace_bytes
from rag_lab.evaluation.watched_trace import WatchedTrace
from rag_lab.evaluation.whole_metric import WholeMetric
from rag_lab.records import Score, Trace

_TRACE: TypeAdapter[Trace] = TypeAdapter(Trace)


def own_metric(info: MetricInfo, module: Module, tools: Tools) -> Metric:
    """Return what `module` holds as a metric whose faults cost single scores."""
    what = f"metric {info.name!r}"
    if is_whole(module.made):
        return WholeMetric(info, OwnCode(module, what, "score"))
    return OwnMetric(info, OwnCode(module, what), tools, tuple(models_asked(module.made, info.name)))


@dataclass(frozen=True)
class OwnMetric:
    """Something that is called with each trace that has what it needs."""

    info: MetricInfo
    code: OwnCode
    tools: Tools
    models: tuple[str, ...]  # the parameters behind the trace
    batch_size: int = 8  # a kill loses as many at most
    _of_run: set[tuple[str, int]] = field(default_factory=set, compare=False)

    @property
    def name(self) -> str:
        """As tables say it."""
        return self.info.name

    @property
    def needs(self) -> Needs:
        """What it says that a trace must have, and the models that it asks."""
        return self.info.needs

    def identity(self) -> Mapping[str, Any]:
        """Return its source and parameters, and the models that it asks."""
        asked = [getattr(self.tools, name) for name in self.models]
        models = [dict(model.identity()) for model in asked if model is not None]
        return {"metric": self.name, "code": self.code.identity(), "models": models}

    def reads(self, trace: Trace) -> Mapping[str, Any] | None:
        """Return the trace as the metric sees it; None where it is not called.

        One that asks no model is quick: the digest of what it sees stands for it.
        """
        if find_gap(trace, self.needs):
            return None
        if not self.models:
            return {"seen": sha256(trace_bytes(self._seen(trace))).hexdigest()}
        seen: dict[str, Any] = _TRACE.dump_python(self._seen(trace), mode="json", exclude={"texts"})
        return seen

    def is_of_run(self, score: Score) -> bool:
        """Tell whether the records of stages were read for a score."""
        return (score.question_id, score.repeat) in self._of_run

    def score(self, traces: Sequence[Trace]) -> list[Score]:
        """Return one score for each trace, in order."""
        return [self._score(trace) for trace in traces]

    def _score(self, trace: Trace) -> Score:
        if gap := find_gap(trace, self.needs):
            return gap.to_score(trace, self.name)
        judge = self._judge(trace.repeat)
        given: dict[str, Any] = {"judge": judge, "embedder": _Unwatched(self.tools.embedder)}
        models = [given[name] for name in self.models]
        started, seen = time.perf_counter(), self._seen(trace)
        try:
            found = self.code.call(seen, *models, accept=self._accepted)
        except OwnCodeError as error:
            after = f"{trace.failure.stage} failed: {trace.failure.reason}; then " if trace.failure else ""
            found = Gap("failed", f"{after}{error}")
        if seen.stages_read:
            self._of_run.add((trace.question.question_id, trace.repeat))
        return self._told(trace, found, judge, time.perf_counter() - started)

    def _told(self, trace: Trace, found: Gap | tuple[float, str], judge: RememberedJudge | None, own_s: float) -> Score:
        is_gap = isinstance(found, Gap)
        return Score(
            trace.question.question_id,
            self.name,
            None if isinstance(found, Gap) else found[0],
            found.status if isinstance(found, Gap) else "scored",
            found.reason if isinstance(found, Gap) else found[1],
            trace.repeat,
            judge=model_name(judge.identity()) if judge else "",
            seconds=judge.seconds if judge else own_s,
            calls=judge.calls if judge else 0,
            curable=is_gap and judge is not None and judge.is_troubled,
            truncated_tokens=judge.truncated_tokens if judge else 0,
        )

    def _judge(self, repeat: int) -> RememberedJudge | None:
        if "judge" not in self.needs or self.tools.judge is None:
            return None
        replies = self.tools.replies or JudgeReplies(self.tools.judge)
        return RememberedJudge(self.tools.judge, replies, repeat)

    def _seen(self, trace: Trace) -> WatchedTrace:
        """Return the trace without what the metric does not say that it reads: what it says is what counts.

        One that asks models does not see the records of stages: its score is remembered by what it sees.
        """
        read = {field.partition(".")[0] for field in self.info.reads} | (set() if self.models else {"stages"})
        return WatchedTrace(trace.question, trace.repeat, **{name: getattr(trace, name) for name in read})

    def _accepted(self, returned: Any) -> Gap | tuple[float, str]:
        if isinstance(returned, Gap):
            return returned
        value, reason = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, "")
        if value is None:
            return Gap("not_applicable", str(reason or f"the {self.code.what} has no value for it"))
        try:
            number = math.nan if isinstance(value, str | bytes) else float(value)
        except (TypeError, ValueError):
            number = math.nan
        low, high = self.info.low, self.info.high
        if not math.isfinite(number):
            raise OwnCodeError(f"the {self.code.what} returned {value!r:.60}, which is no number")
        if (low is not None and number < low) or (high is not None and number > high):
            raise OwnCodeError(f"the {self.code.what} returned {number:g}, which is beyond its own low or high")
        return number, str(reason)


@dataclass(frozen=True)
class _Unwatched:
    """An embedder whose weights may be loaded while a metric is watched: they are known by its identity."""

    embedder: Any

    def identity(self) -> Mapping[str, Any]:
        return dict(self.embedder.identity())

    def embed_documents(self, texts: Sequence[str]) -> Any:
        with unwatched():
            return self.embedder.embed_documents(texts)

    def embed_queries(self, texts: Sequence[str]) -> Any:
        with unwatched():
            return self.embedder.embed_queries(texts)
