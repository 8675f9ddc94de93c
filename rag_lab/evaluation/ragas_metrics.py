"""RAGAs' metrics on traces: RAGAs' own classes and values, with failures kept as reasons instead of NaN.

Names and definitions are RAGAs' own (Es et al. 2023 and its documentation), version 0.4.3; where a class has modes, the
mode that is not its default is part of the name. One name is ours: `faithfulness_to_conversation`, whose contexts
are the passages and the earlier turns. The non-LLM context metrics exist only in its older interface. What is
left out is for other tasks: agents, tools, SQL, tables, images, summaries, and rubrics that the user writes.

RAGAs raises, swallows errors, and returns NaN. It is imported late, kept from reporting its use, and runs in a thread
of its own.
"""

import asyncio
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from rag_lab._kit.config_file import read_shipped
from rag_lab._kit.registry import version
from rag_lab._kit.section import adapter_of
from rag_lab.errors import RagLabError
from rag_lab.evaluation.judge_queue import JudgeError, JudgeQueue, judgement_lines
from rag_lab.evaluation.metric import Family, Gap, MetricInfo, Need, Needs, Tools, find_gap, model_name
from rag_lab.memory.results import batches
from rag_lab.models.protocols import ChatModel, Embedder
from rag_lab.models.truncation import truncated_of
from rag_lab.records import Evidence, Passage, Score, Trace
from rag_lab.redaction import one_line

COLLECTIONS = "ragas.metrics.collections"
# A sentence that says so is none of the subject: what it shares with a reference is its words.
ABSTAINED = Gap("not_applicable", "the reader abstained, so there is no answer to compare; answer.abstention counts it")
_NEED: dict[str, Need] = {
    "response": "answer",
    "reference": "reference",
    "retrieved_contexts": "contexts",
    "whole_contexts": "contexts",
    "contexts_and_turns": "contexts",
    "retrieved_context_ids": "contexts",
    "reference_contexts": "evidence",
    "reference_context_ids": "evidence",
}
# Measures that compare whole passages with whole reference contexts take passages as they were retrieved: a passage
# that the token budget cut to half would count as another text, whatever it holds.
RAGAS_NAME = {"whole_contexts": "retrieved_contexts", "contexts_and_turns": "retrieved_contexts"}
_METRICS = read_shipped(Path(__file__).with_name("ragas_metrics.yaml"))


@dataclass(frozen=True, slots=True)
class RagasSpec:
    """A RAGAs class, its settings, the arguments it takes from a trace and the models it takes."""

    class_name: str
    arguments: tuple[str, ...]
    sentence: str  # what it measures
    models: tuple[Need, ...] = ()
    module: str = COLLECTIONS
    low: float = 0.0
    higher_is_better: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)
    translatable: bool = True  # False where RAGAs writes the prompt without its translatable parts
    library: str = ""  # the package behind RAGAs that computes it
    calls: tuple[int, ...] = ()  # those of `registry.JudgeCalls`, of one that asks a judge
    asks_again: bool = False  # whether RAGAs itself asks again after an unusable reply

    @property
    def needs(self) -> Needs:
        """What a trace must have, and which models are asked."""
        return frozenset({_NEED[name] for name in self.arguments if name in _NEED} | set(self.models))


def fill_arguments(spec: RagasSpec, trace: Trace) -> dict[str, Any] | Gap:
    """Return RAGAs' arguments for a trace that has what the metric needs, or why RAGAs could not score it."""
    arguments = {RAGAS_NAME.get(name, name): _FILL[name](trace) for name in spec.arguments}
    if "reference_contexts" in arguments and not all(arguments["reference_contexts"]):
        missing = next(item for item in trace.question.evidence if not item.context)
        place = "file" if missing.page is None else "page"
        reason = (
            "where the evidence stands is not known: it was not found in the documents, or nobody looked for it, as "
            "Pipeline.run and Pipeline.locate do"
        )
        if missing.quote is None:
            of_several = f"the labels name a {place} of several passages and no quote"
            reason = f"{of_several}, so which of them is the evidence is not known"
        return Gap("not_applicable", reason)
    if "judge" not in spec.models and "response" in arguments and trace.answer is not None and trace.answer.abstained:
        return ABSTAINED
    if "judge" in spec.models and "response" in arguments and not arguments["response"].strip():
        if trace.answer is not None and trace.answer.abstained and not trace.question.answerable:
            return Gap("not_applicable", "the reader rightly said nothing")
        return Gap("failed", "the answer is empty")
    return arguments


def _ids(trace: Trace, items: Sequence[Passage | Evidence]) -> list[str]:
    """Return the places of some items; of a file in which the label of one item has no page, the file alone."""
    unpaged = {item.source for item in trace.question.evidence if item.page is None}
    return [one.source if one.source in unpaged else f"{one.source}#{one.page}" for one in items]


_FILL: dict[str, Callable[[Trace], Any]] = {
    "user_input": lambda trace: trace.question.text,
    "response": lambda trace: trace.answer.text if trace.answer is not None else "",
    "reference": lambda trace: trace.question.answers[0],
    "retrieved_contexts": lambda trace: [passage.text for passage in trace.passages],
    "whole_contexts": lambda trace: [passage.retrieved for passage in trace.passages],
    "contexts_and_turns": lambda trace: [
        *(passage.text for passage in trace.passages),
        *([trace.remembered.summary] if trace.remembered.summary else []),
        *(f"{turn.role}: {turn.content}" for turn in trace.remembered.turns),
    ],
    "retrieved_context_ids": lambda trace: _ids(trace, trace.passages),
    "reference_context_ids": lambda trace: _ids(trace, trace.question.evidence),
    "reference_contexts": lambda trace: list(dict.fromkeys(item.context for item in trace.question.evidence)),
}


SPECS = {name: adapter_of(RagasSpec).validate_python(values) for name, values in _METRICS.items()}
INFOS = tuple(
    MetricInfo(
        f"ragas.{name}",
        s.sentence,
        s.needs,
        s.low,
        1.0,
        s.higher_is_better,
        s.translatable,
        fields=frozenset({"passages", "remembered", "answer"}) if "contexts_and_turns" in s.arguments else None,
    )
    for name, s in SPECS.items()
)


_ROUNDING = 1e-5  # of float32 vectors of unit length
_JUDGED_BATCH = 8  # scores that ask the judge at the same time
_ROUNDS = 16  # scores for each call that a remote judge answers at a time: its places stay taken until near the end
_TRANSLATION_TOKENS = 4096  # all examples of a prompt are translated in one reply
_ATTEMPTS = 2  # where RAGAs itself takes an unusable reply for final
_ADAPTER = "rag_lab.evaluation.ragas_adapter"


def ragas_module(name: str) -> ModuleType:
    """Import a module of RAGAs, or one of ours that does, which would report its use otherwise."""
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    return import_module(name)


@dataclass(frozen=True)
class RagasMetric:
    """One RAGAs metric with the models it asks; None where it asks none, or there is none."""

    name: str
    spec: RagasSpec
    needs: Needs
    judge: ChatModel | None
    embedder: Embedder | None
    language: str  # into which the examples of its prompts are put
    batch_size: int  # traces that are measured concurrently, and between two saves
    queue: JudgeQueue | None = field(compare=False)
    of_run: ClassVar[frozenset[tuple[str, int]]] = frozenset()  # RAGAs reads what traces say

    def identity(self) -> Mapping[str, Any]:
        """Return the RAGAs class and version, its settings, and the identities of the models it asks."""
        return {
            "metric": self.name,
            "version": 2,
            "ragas": version("ragas"),
            **({"library": version(self.spec.library)} if self.spec.library else {}),
            "settings": dict(self.spec.settings),
            **({"language": self.language} if self.language else {}),
            "judge": None if self.judge is None else dict(self.judge.identity()),
            "embedder": None if self.embedder is None else dict(self.embedder.identity()),
        }

    def reads(self, trace: Trace) -> Mapping[str, Any] | None:
        """Return RAGAs' arguments, or None where there is nothing to ask."""
        arguments = self._arguments(trace)
        return None if isinstance(arguments, Gap) else arguments

    def score(self, traces: Sequence[Trace]) -> list[Score]:
        """Return one score for each trace, in order, `batch_size` of them at a time."""
        gaps = [each for each in map(self._arguments, traces) if isinstance(each, Gap)]
        if len(gaps) == len(traces):  # RAGAs is not imported for them
            return [gap.to_score(trace, self.name) for trace, gap in zip(traces, gaps, strict=True)]
        scores: list[Score] = []
        # A thread of its own, since a notebook's already runs an event loop. An interruption reaches the waiting thread
        # alone: the queue's stop brings the other one to its end.
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="ragas") as thread:
            for some in batches(traces, self.batch_size):
                future = thread.submit(copy_context().run, asyncio.run, self._score_batch(some))
                try:
                    scores += future.result()
                except BaseException:
                    if self.queue is not None:
                        self.queue.stop()
                    raise
        return scores

    async def _score_batch(self, traces: Sequence[Trace]) -> list[Score]:
        ragas_module(self.spec.module)  # so that no score is charged with the import
        arguments = [self._arguments(trace) for trace in traces]
        asked = [each for each in arguments if not isinstance(each, Gap)]
        started, embeddings = time.perf_counter(), None
        if self.embedder is not None and asked:
            embeddings = ragas_module(_ADAPTER).RagasEmbeddings(self.embedder)
            with suppress(Exception):  # in one batch what RAGAs asks one by one; each score meets a failure itself
                embeddings.embed_texts([text for each in asked for text in _texts(each)])
        share_s = (time.perf_counter() - started) / max(len(asked), 1)
        each_score = (self._score(t, one, embeddings, share_s) for t, one in zip(traces, arguments, strict=True))
        return list(await asyncio.gather(*each_score))

    async def _score(self, trace: Trace, arguments: dict[str, Any] | Gap, embeddings: Any, share_s: float) -> Score:
        if isinstance(arguments, Gap):
            return arguments.to_score(trace, self.name)
        session = None
        if self.queue:
            attempts = 1 if self.spec.asks_again else _ATTEMPTS
            session = ragas_module(_ADAPTER).JudgeSession(self.queue, trace.repeat, attempts)
        started = time.perf_counter()
        value, error = await self._value(arguments, session, embeddings)
        lines = judgement_lines(session.replies, arguments) if session else ""
        own_s = session.seconds if session else time.perf_counter() - started
        model = self.judge or self.embedder
        return Score(
            trace.question.question_id,
            self.name,
            value,
            "scored" if error is None else "failed",
            lines if error is None else error.reason,
            trace.repeat,
            judge="" if model is None else model_name(model.identity()),
            seconds=own_s + share_s,
            calls=session.calls if session else 0,
            curable=error is not None and not error.permanent,
            truncated_tokens=(session.truncated_tokens if session else 0)
            + (sum(truncated_of(self.embedder, _texts(arguments), "document")) if self.embedder else 0),
        )

    async def _value(
        self, arguments: Mapping[str, Any], session: Any, embeddings: Any
    ) -> tuple[float | None, JudgeError | None]:
        """Return RAGAs' value, or the error that stands for it."""
        models = {"llm": session, "embeddings": embeddings}
        wanted = {name: model for name, model in models.items() if model is not None}
        try:
            metric = getattr(ragas_module(self.spec.module), self.spec.class_name)(**wanted, **self.spec.settings)
            if self.language:  # the same translations for all repeats, and not counted as calls of a score
                adapter = ragas_module(_ADAPTER)
                translator = adapter.JudgeSession(self.queue, 0, _ATTEMPTS, _TRANSLATION_TOKENS)
                vars(metric).update(await adapter.adapted_prompts(metric, self.language, translator))
            if self.spec.module != COLLECTIONS:  # the older interface, which takes a sample
                sample = ragas_module("ragas.dataset_schema").SingleTurnSample(**arguments)
                value = float(await metric.single_turn_ascore(sample))
            else:
                value = float((await metric.ascore(**arguments)).value)
        except JudgeError as error:
            return None, error
        except RagLabError as error:
            return None, JudgeError(str(error), permanent=False)
        except Exception as error:  # one trace's trouble inside RAGAs is that trace's failed score
            text = str(error).strip()
            first_line = one_line(text.splitlines()[0], 200) if text else type(error).__name__
            return None, JudgeError(f"RAGAs gave up: {first_line}", permanent=False)
        if session and session.error:
            return None, session.error
        if not math.isfinite(value):
            return None, JudgeError("RAGAs gave no number")
        if not self.spec.low - _ROUNDING <= value <= 1 + _ROUNDING:
            return None, JudgeError(f"RAGAs gave {value:g}, which is outside its range")
        return value, None

    def _arguments(self, trace: Trace) -> dict[str, Any] | Gap:
        return find_gap(trace, self.needs) or fill_arguments(self.spec, trace)


def _texts(arguments: Mapping[str, Any]) -> list[str]:
    """Return the texts that are embedded for one score."""
    return [text for text in arguments.values() if isinstance(text, str) and text]


def make_metric(name: str, spec: RagasSpec, tools: Tools) -> RagasMetric:
    """Return a metric of any RAGAs class, also one that the table does not name."""
    needs, queue, batch_size = spec.needs, None, 128
    judge = tools.judge if "judge" in needs else None
    if judge is not None:
        queue = JudgeQueue(judge, tools.replies)
        batch_size = _JUDGED_BATCH if queue.n_at_once == 1 else _ROUNDS * queue.n_at_once
    embedder, language = tools.embedder if "embeddings" in needs else None, tools.language if "judge" in needs else ""
    return RagasMetric(name, spec, needs, judge, embedder, language, batch_size, queue)


FAMILY = Family(
    INFOS, lambda name, info, argument, tools: make_metric(name, SPECS[info.name.removeprefix("ragas.")], tools)
)
