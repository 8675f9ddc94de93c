"""RAGAs' metrics on traces: RAGAs' own classes and values, with failures kept as reasons instead of NaN."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import Any

from rag_lab.errors import RagLabError
from rag_lab.evaluation.judge_queue import JudgeQueue
from rag_lab.evaluation.judge_reply import JudgeError
from rag_lab.evaluation.metric import Gap, Measurement, Metric, MetricInfo, Needs, Tools, find_gap, model_name
from rag_lab.evaluation.ragas_table import INFOS, SPECS, RagasSpec, fill_arguments
from rag_lab.records import Score, Trace

__all__ = ["INFOS", "RagasMetric", "build", "make_metric"]

_JUDGED_BATCH = 8  # scores that ask the judge at the same time
_CHEAP_BATCH = 128
_ROUNDING = 1e-5  # of float32 vectors of unit length


@dataclass(frozen=True)
class RagasMetric:
    """One RAGAs metric with the models it asks."""

    name: str
    spec: RagasSpec
    tools: Tools
    queue: JudgeQueue | None = field(compare=False)

    @property
    def needs(self) -> Needs:
        """What a trace must have, and which models are asked."""
        return self.spec.needs

    @property
    def batch_size(self) -> int:
        """How many traces are measured concurrently, and between two saves."""
        return _JUDGED_BATCH if self.queue else _CHEAP_BATCH

    def identity(self) -> Mapping[str, Any]:
        """Return the RAGAs class and version, its settings, and the identities of the models it asks."""
        judge, embedder = self._models()
        return {
            "metric": self.name,
            "version": 1,
            "ragas": version("ragas"),
            "settings": dict(self.spec.settings),
            "judge": None if judge is None else dict(judge.identity()),
            "embedder": None if embedder is None else dict(embedder.identity()),
        }

    def reads(self, trace: Trace) -> Mapping[str, Any] | None:
        """Return RAGAs' arguments, or None where there is nothing to ask."""
        arguments = self._arguments(trace)
        return None if isinstance(arguments, Gap) else arguments

    def score(self, traces: Sequence[Trace]) -> list[Score]:
        """Return one score for each trace, in order."""
        return [measurement.score for measurement in self.measure(traces)]

    def measure(self, traces: Sequence[Trace]) -> list[Measurement]:
        """Return one measurement for each trace, in order, `batch_size` of them at a time."""
        measurements: list[Measurement] = []
        for start in range(0, len(traces), self.batch_size):
            measurements += _run(self._measure_batch(traces[start : start + self.batch_size]))
        return measurements

    async def _measure_batch(self, traces: Sequence[Trace]) -> list[Measurement]:
        _ragas(self.spec.module)  # so that no score is charged with the import
        arguments = [self._arguments(trace) for trace in traces]
        asked = [each for each in arguments if not isinstance(each, Gap)]
        started = time.perf_counter()
        embeddings = self._embeddings(asked)
        share_s = (time.perf_counter() - started) / max(len(asked), 1)
        return list(
            await asyncio.gather(
                *(self._measure(t, each, embeddings, share_s) for t, each in zip(traces, arguments, strict=True))
            )
        )

    async def _measure(
        self, trace: Trace, arguments: dict[str, Any] | Gap, embeddings: Any, share_s: float
    ) -> Measurement:
        if isinstance(arguments, Gap):
            return Measurement(arguments.to_score(trace, self.name), lasting=False)
        session = _adapter().JudgeSession(self.queue, trace.repeat) if self.queue else None
        started = time.perf_counter()
        value, error = await self._ask_ragas(arguments, session, embeddings)
        own_s = session.seconds if session else time.perf_counter() - started
        score = Score(
            trace.question.question_id,
            self.name,
            value,
            "scored" if error is None else "failed",
            "" if error is None else error.reason,
            trace.repeat,
            judge=self._judge_name,
            seconds=own_s + share_s,
            calls=session.calls if session else 0,
        )
        return Measurement(score, lasting=error is None or error.lasting)

    async def _ask_ragas(
        self, arguments: dict[str, Any], session: Any, embeddings: Any
    ) -> tuple[float | None, JudgeError | None]:
        """Return RAGAs' value, or the error that stands for it: RAGAs raises, swallows errors, and returns NaN."""
        try:
            value = await self._ragas_value(arguments, session, embeddings)
        except JudgeError as error:
            return None, error
        except RagLabError as error:
            return None, JudgeError(str(error), lasting=False)
        except Exception as error:  # one trace's trouble inside RAGAs is that trace's failed score
            return None, JudgeError(f"RAGAs gave up: {_first_line(error)}", lasting=False)
        if session and session.error:
            return None, session.error
        if not math.isfinite(value):
            return None, JudgeError("RAGAs gave no number")
        if not self.spec.low - _ROUNDING <= value <= 1 + _ROUNDING:
            return None, JudgeError(f"RAGAs gave {value:g}, which is outside its range")
        return value, None

    async def _ragas_value(self, arguments: dict[str, Any], session: Any, embeddings: Any) -> float:
        models = {"llm": session, "embeddings": embeddings}
        wanted = {name: model for name, model in models.items() if model is not None}
        ragas_class = getattr(_ragas(self.spec.module), self.spec.class_name)
        metric = ragas_class(**wanted, **self.spec.settings)
        if self.spec.is_legacy:
            sample = _ragas("ragas.dataset_schema").SingleTurnSample(**arguments)
            return float(await metric.single_turn_ascore(sample))
        return float((await metric.ascore(**arguments)).value)

    def _arguments(self, trace: Trace) -> dict[str, Any] | Gap:
        return find_gap(trace, self.needs) or fill_arguments(self.spec, trace)

    def _embeddings(self, asked: Sequence[Mapping[str, Any]]) -> Any:
        _, embedder = self._models()
        if embedder is None or not asked:
            return None
        embeddings = _adapter().RagasEmbeddings(embedder)
        embeddings.prime(text for arguments in asked for text in arguments.values() if isinstance(text, str) and text)
        return embeddings

    def _models(self) -> tuple[Any, Any]:
        needs = self.needs
        return (
            self.tools.judge if "judge" in needs else None,
            self.tools.embedder if "embeddings" in needs else None,
        )

    @cached_property
    def _judge_name(self) -> str:
        """Return who gave the score: the judge, else the embedding model."""
        judge, embedder = self._models()
        model = judge or embedder
        return "" if model is None else model_name(model.identity())


def build(name: str, info: MetricInfo, argument: str, tools: Tools) -> Metric:
    """Return the RAGAs metric called `name`; RAGAs is not imported yet."""
    return make_metric(name, SPECS[name.removeprefix("ragas.")], tools)


def make_metric(name: str, spec: RagasSpec, tools: Tools) -> RagasMetric:
    """Return a metric of any RAGAs class, also one that the table does not name."""
    queue = JudgeQueue(tools.judge) if "judge" in spec.needs and tools.judge is not None else None
    return RagasMetric(name, spec, tools, queue)


def _ragas(module: str) -> ModuleType:
    """Import a module of RAGAs, which would report its use to its authors where it is not told otherwise."""
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    return import_module(module)


def _adapter() -> ModuleType:
    return _ragas("rag_lab.evaluation.ragas_adapter")


def _run(coroutine: Coroutine[Any, Any, list[Measurement]]) -> list[Measurement]:
    """Run to the end in a thread of its own: a notebook's thread already runs an event loop."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="ragas") as thread:
        return thread.submit(asyncio.run, coroutine).result()


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__
