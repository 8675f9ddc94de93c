"""Scores that follow from what traces say are quick to compute: those of all traces together are remembered as one.

To look each up alone would take longer than to compute it. So they have one entry a metric, under its identity and the
digest of all that the traces say, read in one piece; one question more and they are computed anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter

from rag_lab._kit.digest import digest
from rag_lab._kit.observing.tracing import say
from rag_lab.evaluation.metric import TracedMetric
from rag_lab.memory.results import Memory
from rag_lab.records import Score, Trace

_TRACE: TypeAdapter[Trace] = TypeAdapter(Trace)
_AS_RUN = {"stages": True, "texts": True}  # seconds and the like, which differ from run to run; texts, which spans name


class TracesScored:
    """The traces of one evaluation; their digest is made once for all metrics, where one asks for it."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        self.traces = traces

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of all that the traces say; of their stages how each ended."""
        found = hashlib.sha256()
        for trace in self.traces:
            found.update(trace_bytes(trace) + b"\n")
            found.update(json.dumps([(each.stage, each.status, each.reason) for each in trace.stages]).encode() + b"\n")
        return found.hexdigest()


def trace_bytes(trace: Trace) -> bytes:
    """Return what a trace says, as JSON, without the records of its stages."""
    return _TRACE.dump_json(trace, exclude=_AS_RUN)


def score_whole(metric: TracedMetric, scored: TracesScored, memory: Memory) -> list[Score]:
    """Return one score for each trace, in order, as remembered, or computed and remembered.

    Where one failed, none is remembered: what made it fail may be mended.
    """
    key = digest({"metric": dict(metric.identity()), "traces": scored.digest})
    if (known := memory.recall([key]).get(key)) and (scores := _decoded(known, metric, scored.traces)):
        say(rag_lab__remembered=len(scores))
        return scores
    say(rag_lab__remembered=0)
    scores = metric.score(scored.traces)
    if not any(score.status == "failed" for score in scores):
        text = json.dumps([_row(score) for score in scores], ensure_ascii=False)
        if _decoded(text, metric, scored.traces) == scores:
            memory.store(metric.name, {key: text})
    return scores


def _row(score: Score) -> list[Any]:
    return [score.value, score.status, score.reason]


def _decoded(text: str, metric: TracedMetric, traces: Sequence[Trace]) -> list[Score]:
    rows = json.loads(text)
    return [
        Score(trace.question.question_id, metric.name, value, status, reason, trace.repeat)
        for trace, (value, status, reason) in zip(traces, rows, strict=True)
    ]
