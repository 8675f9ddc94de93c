"""The contract of a metric: it reads traces and nothing else, and a value that is missing says why.

`not_applicable` means that the question could not have a value (it has no reference, no answer was asked for);
`failed` means that it should have one and does not. Neither is ever 0 or NaN, and both are kept as scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from pydantic import TypeAdapter

from rag_lab._kit.config_file import read_shipped
from rag_lab._kit.digest import digest
from rag_lab.evaluation.judge_queue import JudgeReplies
from rag_lab.models.protocols import ChatModel, Embedder
from rag_lab.records import Question, Score, Trace

if TYPE_CHECKING:
    from rag_lab.statistics.summaries import Scale

Need = Literal["ranking", "answer", "reference", "evidence", "contexts", "judge", "embeddings", "rights", "forbidden"]
Needs = frozenset[Need]
Visible = Callable[[Question, str], bool]  # who asks, and a file

FIELDS: Mapping[Need, str] = {"ranking": "ranked", "contexts": "passages", "answer": "answer"}  # of the trace

IN_TOKENS = "@<n>tokens"  # ends the names of metrics that read so much text of a ranking


# A failure in these stages comes after the field is complete, so it takes nothing away from a metric that reads it.
_ASSEMBLY = "context"
_AFTER_CONTEXTS = frozenset({"generate", "parse"})
_AFTER_RANKING = _AFTER_CONTEXTS | {_ASSEMBLY}


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """What a metric is, for the documentation and the command line."""

    name: str  # may hold a placeholder: `@k` (a cut-off), `@<n>tokens` or `<stage>`
    sentence: str
    needs: Needs
    low: float | None = 0.0  # None where there is no bound; both where nobody has declared what the values can be
    high: float | None = 1.0
    higher_is_better: bool = True
    translatable: bool = True  # False where a judge's prompts are in English, whatever language is asked for
    is_cost: bool = False  # what an answer takes, not how good it is
    fields: frozenset[str] | None = None  # of the trace, that it reads; None: those that `needs` stand for
    calls: int | None = None  # of the judge, for one score, where a metric of one's own says so

    @property
    def reads(self) -> frozenset[str]:
        """The fields of a trace that the metric reads, its question and the records of its stages aside."""
        return frozenset(FIELDS[need] for need in self.needs if need in FIELDS) if self.fields is None else self.fields

    @property
    def reads_answers(self) -> bool:
        """Whether the metric reads what only stages that answer set."""
        return "answer" in self.needs or bool(self.reads & frozenset({"answer", "raw_text", "prompt"}))

    @property
    def scale(self) -> Scale:
        """The range of the metric, and which end of it is the better."""
        from rag_lab.statistics.summaries import Scale

        return Scale(self.low, self.high, self.higher_is_better)


_SENTENCES = read_shipped(Path(__file__).with_name("sentences.yaml"))


def info_of(name: str, needs: Needs, **rest: Any) -> MetricInfo:
    """Return what a metric of ours is, with its sentence; `rest` are what differs from the defaults of `MetricInfo`."""
    return MetricInfo(name, _SENTENCES[name], needs, **rest)


TRACE: TypeAdapter[Trace] = TypeAdapter(Trace)
# What a trace says, as JSON: its stages' records differ from run to run, and spans name the texts.
trace_bytes = partial(TRACE.dump_json, exclude={"stages": True, "texts": True})


@dataclass(frozen=True, slots=True)
class Tools:
    """The models that a metric may use, the judge's remembered replies, its language, and who may see what."""

    judge: ChatModel | None = None
    embedder: Embedder | None = None
    replies: JudgeReplies | None = None  # of `judge`; metrics that share them ask nothing twice
    language: str = ""  # of the examples in a judge's prompts, such as "german"; RAGAs' own where empty
    visible: Visible | None = None  # tells whether the asker of a question may see a file


@dataclass(frozen=True, slots=True)
class Gap:
    """Why there is no value."""

    status: Literal["failed", "not_applicable"]
    reason: str

    def to_score(self, trace: Trace, metric: str) -> Score:
        """Return the score that records the gap."""
        return Score(trace.question.question_id, metric, None, self.status, self.reason, trace.repeat)


NOT_ASKED = Gap("not_applicable", "no answer was asked for")
NOTHING_TO_READ = Gap("not_applicable", "the reader is given nothing to read, by the design of the variant")
OF_LABELS = Gap("not_applicable", "the context is made of the labels, by the design of the variant")
NO_CONTEXT = Gap("not_applicable", "no context was assembled, since nothing read it when this was run")


class Metric(Protocol):
    """Something that can be measured on a trace."""

    @property
    def name(self) -> str:
        """The name as the user gave it, e.g. `retrieval.ndcg@10`."""

    @property
    def needs(self) -> Needs:
        """What a trace must have, and which models the metric uses."""

    def score(self, traces: Sequence[Trace]) -> list[Score]:
        """Return one score for each trace, in order. What is wrong with one trace is a score, never an exception."""


@runtime_checkable
class CostlyMetric(Metric, Protocol):
    """A metric whose values are remembered one by one: models are asked for them, or libraries loaded."""

    def identity(self) -> Mapping[str, Any]:
        """Return everything but the trace that can change the value, as JSON values."""

    @property
    def batch_size(self) -> int:
        """How many traces to measure between two saves."""

    def reads(self, trace: Trace) -> Mapping[str, Any] | None:
        """Return what the value depends on, as JSON values; None where there is nothing to compute."""

    @property
    def of_run(self) -> Set[tuple[str, int]]:
        """Question and repeat of scores that say something of this run alone, such as how long it took."""


@dataclass(frozen=True, slots=True)
class Family:
    """Metrics that ship with the workbench and are made alike: `build(name, info, argument, tools)` makes one."""

    infos: Sequence[MetricInfo]
    build: Callable[[str, MetricInfo, str, Tools], Metric]


@dataclass(frozen=True)
class TraceMetric:
    """A metric that is a pure function of one trace."""

    name: str
    needs: Needs
    compute: Callable[[Trace], float | Gap]

    def score(self, traces: Sequence[Trace]) -> list[Score]:
        """Return one score for each trace, in order."""
        found = [find_gap(trace, self.needs) or self.compute(trace) for trace in traces]
        return [scored(trace, self.name, value) for trace, value in zip(traces, found, strict=True)]


def family_of(*measures: tuple[MetricInfo, Callable[[Trace], float | Gap]]) -> Family:
    """Return a family of metrics that are functions of one trace, each with its function."""
    computed = {info.name: compute for info, compute in measures}
    return Family(
        [info for info, _ in measures],
        lambda name, info, argument, tools: TraceMetric(name, info.needs, computed[info.name]),
    )


def model_name(identity: Mapping[str, Any]) -> str:
    """Return a model's name in a table, `provider:name`; a digest where its identity has neither."""
    named = ":".join(str(identity[key]) for key in ("provider", "name") if key in identity)
    return named or digest(dict(identity))[:12]


def scored(trace: Trace, metric: str, value: float | Gap) -> Score:
    """Return the score that holds `value` or records the gap; a value that is no finite number is a failed score."""
    if isinstance(value, Gap):
        return value.to_score(trace, metric)
    if not math.isfinite(value):
        return Gap("failed", f"the metric gave {value}, which is no number").to_score(trace, metric)
    return Score(trace.question.question_id, metric, float(value), repeat=trace.repeat)


def find_gap(trace: Trace, needs: Needs) -> Gap | None:
    """Return why `trace` lacks something of `needs` (models aside), or None where it has all."""
    if gap := question_gap(trace.question, needs):  # first: a failure is no loss where there was nothing to measure
        return gap
    if (failure := trace.failure) and (
        ("ranking" in needs and not trace.ranked and failure.stage not in _AFTER_RANKING)
        or ("contexts" in needs and not trace.passages and failure.stage not in _AFTER_CONTEXTS)
        or ("answer" in needs and trace.answer is None)
    ):
        return Gap("failed", f"{failure.stage} failed: {failure.reason}")
    if "ranking" in needs and not trace.ranked and not trace.stages:
        return Gap("not_applicable", "retrieval has not run")
    if "answer" in needs and trace.answer is None:
        return NOT_ASKED
    if "contexts" in needs and trace.has_nothing_to_read:
        return NOTHING_TO_READ
    if {"contexts", "evidence"} <= needs and trace.reads_labels:
        return OF_LABELS
    if "contexts" in needs and not trace.passages:
        assembled = any(record.stage == _ASSEMBLY for record in trace.stages)
        return Gap("failed", "the context is empty") if assembled else NO_CONTEXT
    return None


def question_gap(question: Question, needs: Needs) -> Gap | None:
    """Return what the question itself lacks of `needs`, whatever the pipeline does; None where it has all."""
    unanswerable = "" if question.answerable else ": the documents do not hold the answer"
    if "evidence" in needs and (unanswerable or not question.evidence):
        return Gap("not_applicable", f"the question has no evidence{unanswerable}")
    if "forbidden" in needs and not question.forbidden:
        return Gap("not_applicable", "no fact is forbidden to its asker")
    if "rights" in needs and question.may_see is None and question.namespace is None:
        return Gap("not_applicable", "its asker may see everything")
    if "reference" in needs and not question.answers:
        return Gap("not_applicable", f"the question has no reference answer{unanswerable}")
    return None
