"""RAGAs' metrics on traces: RAGAs' own classes and values, with failures kept as reasons instead of NaN.

RAGAs raises, swallows errors, and returns NaN. It is imported late, kept from reporting its use, and runs in a thread
of its own.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import Any, TypeVar

from rag_lab.errors import RagLabError
from rag_lab.evaluation.judge_output import JudgeError
from rag_lab.evaluation.judge_queue import JudgeQueue
from rag_lab.evaluation.metric import Family, Gap, Metric, MetricInfo, Needs, Tools, find_gap, model_name
from rag_lab.evaluation.ragas.judgements import judgement_lines
from rag_lab.evaluation.ragas.table import INFOS, SPECS, RagasSpec, fill_arguments
from rag_lab.records import Score, Trace
from rag_lab.redaction import one_line

Result = TypeVar("Result")

_ROUNDING = 1e-5  # of float32 vectors of unit length
_JUDGED_BATCH = 8  # scores that ask the judge at the same time
_ROUNDS = 16  # scores for each call that a remote judge answers at a time: its places stay taken until near the end
_CHEAP_BATCH = 128
_TRANSLATION_TOKENS = 4096  # all examples of a prompt are translated in one reply
_ATTEMPTS = 2  # where RAGAs itself takes an unusable reply for final
_ADAPTER = "rag_lab.evaluation.ragas.adapter"


@dataclass(frozen=True)
class RagasCall:
    """A RAGAs class with the models that one score asks; `translator` puts its prompts into `language`, where set."""

    spec: RagasSpec
    session: Any = None
    embeddings: Any = None
    language: str = ""
    translator: Any = None

    async def value(self, arguments: Mapping[str, Any]) -> tuple[float | None, JudgeError | None]:
        """Return RAGAs' value, or the error that stands for it."""
        try:
            value = await self._ragas_value(arguments)
        except JudgeError as error:
            return None, error
        except RagLabError as error:
            return None, JudgeError(str(error), permanent=False)
        except Exception as error:  # one trace's trouble inside RAGAs is that trace's failed score
            text = str(error).strip()
            first_line = one_line(text.splitlines()[0], 200) if text else type(error).__name__
            return None, JudgeError(f"RAGAs gave up: {first_line}", permanent=False)
        if self.session and self.session.error:
            return None, self.session.error
        if not math.isfinite(value):
            return None, JudgeError("RAGAs gave no number")
        if not self.spec.low - _ROUNDING <= value <= 1 + _ROUNDING:
            return None, JudgeError(f"RAGAs gave {value:g}, which is outside its range")
        return value, None

    async def _ragas_value(self, arguments: Mapping[str, Any]) -> float:
        models = {"llm": self.session, "embeddings": self.embeddings}
        wanted = {name: model for name, model in models.items() if model is not None}
        metric = getattr(ragas_module(self.spec.module), self.spec.class_name)(**wanted, **self.spec.settings)
        if self.translator is not None:
            adapted = await ragas_module(_ADAPTER).adapted_prompts(metric, self.language, self.translator)
            vars(metric).update(adapted)
        if self.spec.is_legacy:
            sample = ragas_module("ragas.dataset_schema").SingleTurnSample(**arguments)
            return float(await metric.single_turn_ascore(sample))
        return float((await metric.ascore(**arguments)).value)


def ragas_module(name: str) -> ModuleType:
    """Import a module of RAGAs, or one of ours that does, which would report its use otherwise."""
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    return import_module(name)


def run_to_end(coroutine: Coroutine[Any, Any, Result], stop: Callable[[], None]) -> Result:
    """Run to the end in a thread of its own: a notebook's thread already runs an event loop.

    An interruption reaches the waiting thread alone, so `stop` must bring the coroutine to its end.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="ragas") as thread:
        future = thread.submit(copy_context().run, asyncio.run, coroutine)
        try:
            return future.result()
        except BaseException:
            stop()
            raise


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
        if self.queue is None:
            return _CHEAP_BATCH
        return _JUDGED_BATCH if self.queue.n_at_once == 1 else _ROUNDS * self.queue.n_at_once

    def identity(self) -> Mapping[str, Any]:
        """Return the RAGAs class and version, its settings, and the identities of the models it asks."""
        judge, embedder = self._models()
        return {
            "metric": self.name,
            "version": 2,
            "ragas": version("ragas"),
            **({"library": version(self.spec.library)} if self.spec.library else {}),
            "settings": dict(self.spec.settings),
            **({"language": self.tools.language} if self._is_translated else {}),
            "judge": None if judge is None else dict(judge.identity()),
            "embedder": None if embedder is None else dict(embedder.identity()),
        }

    def reads(self, trace: Trace) -> Mapping[str, Any] | None:
        """Return RAGAs' arguments, or None where there is nothing to ask."""
        arguments = self._arguments(trace)
        return None if isinstance(arguments, Gap) else arguments

    def is_of_run(self, score: Score) -> bool:
        """Return False: RAGAs reads what traces say."""
        return False

    def score(self, traces: Sequence[Trace]) -> list[Score]:
        """Return one score for each trace, in order, `batch_size` of them at a time."""
        arguments = [self._arguments(trace) for trace in traces]
        gaps = [each for each in arguments if isinstance(each, Gap)]
        if len(gaps) == len(arguments):  # RAGAs is not imported for them
            return [gap.to_score(trace, self.name) for trace, gap in zip(traces, gaps, strict=True)]
        scores: list[Score] = []
        for start in range(0, len(traces), self.batch_size):
            batch = self._score_batch(traces[start : start + self.batch_size])
            scores += run_to_end(batch, self.queue.stop if self.queue is not None else lambda: None)
        return scores

    async def _score_batch(self, traces: Sequence[Trace]) -> list[Score]:
        ragas_module(self.spec.module)  # so that no score is charged with the import
        arguments = [self._arguments(trace) for trace in traces]
        asked = [each for each in arguments if not isinstance(each, Gap)]
        started = time.perf_counter()
        embeddings = self._embeddings(asked)
        share_s = (time.perf_counter() - started) / max(len(asked), 1)
        return list(
            await asyncio.gather(
                *(self._score(t, each, embeddings, share_s) for t, each in zip(traces, arguments, strict=True))
            )
        )

    async def _score(self, trace: Trace, arguments: dict[str, Any] | Gap, embeddings: Any, share_s: float) -> Score:
        if isinstance(arguments, Gap):
            return arguments.to_score(trace, self.name)
        session = translator = None
        if self.queue:
            attempts = 1 if self.spec.asks_again else _ATTEMPTS
            session = ragas_module(_ADAPTER).JudgeSession(self.queue, trace.repeat, attempts)
        if self._is_translated:  # the same translations for all repeats, and not counted as calls of a score
            translator = ragas_module(_ADAPTER).JudgeSession(self.queue, 0, _ATTEMPTS, _TRANSLATION_TOKENS)
        started = time.perf_counter()
        call = RagasCall(self.spec, session, embeddings, self.tools.language, translator)
        value, error = await call.value(arguments)
        lines = judgement_lines(session.replies, arguments) if session else ""
        own_s = session.seconds if session else time.perf_counter() - started
        return Score(
            trace.question.question_id,
            self.name,
            value,
            "scored" if error is None else "failed",
            lines if error is None else error.reason,
            trace.repeat,
            judge=self._judge_name,
            seconds=own_s + share_s,
            calls=session.calls if session else 0,
            curable=error is not None and not error.permanent,
            truncated_tokens=(session.truncated_tokens if session else 0)
            + (embeddings.truncated_tokens(_texts(arguments)) if embeddings else 0),
        )

    def _arguments(self, trace: Trace) -> dict[str, Any] | Gap:
        return find_gap(trace, self.needs) or fill_arguments(self.spec, trace)

    def _embeddings(self, asked: Sequence[Mapping[str, Any]]) -> Any:
        _, embedder = self._models()
        if embedder is None or not asked:
            return None
        embeddings = ragas_module(_ADAPTER).RagasEmbeddings(embedder)
        embeddings.prime(text for arguments in asked for text in _texts(arguments))
        return embeddings

    @property
    def _is_translated(self) -> bool:
        return bool(self.tools.language) and "judge" in self.needs

    def _models(self) -> tuple[Any, Any]:
        needs = self.needs
        return (self.tools.judge if "judge" in needs else None, self.tools.embedder if "embeddings" in needs else None)

    @cached_property
    def _judge_name(self) -> str:
        """Return who gave the score: the judge, else the embedding model."""
        judge, embedder = self._models()
        model = judge or embedder
        return "" if model is None else model_name(model.identity())


def _texts(arguments: Mapping[str, Any]) -> list[str]:
    """Return the texts that are embedded for one score."""
    return [text for text in arguments.values() if isinstance(text, str) and text]


def build(name: str, info: MetricInfo, argument: str, tools: Tools) -> Metric:
    """Return the RAGAs metric called `name`; RAGAs is not imported yet."""
    return make_metric(name, SPECS[name.removeprefix("ragas.")], tools)


def make_metric(name: str, spec: RagasSpec, tools: Tools) -> RagasMetric:
    """Return a metric of any RAGAs class, also one that the table does not name."""
    queue = JudgeQueue(tools.judge, tools.replies) if "judge" in spec.needs and tools.judge is not None else None
    return RagasMetric(name, spec, tools, queue)


FAMILY = Family(INFOS, build)
