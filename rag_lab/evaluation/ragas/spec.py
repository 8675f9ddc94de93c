"""A RAGAs metric as data: its class, its settings, and which of its arguments a trace fills."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_lab.evaluation.metric import Gap, Need, Needs
from rag_lab.records import Evidence, Trace

_COLLECTIONS = "ragas.metrics.collections"


@dataclass(frozen=True, slots=True)
class RagasSpec:
    """A RAGAs class, its settings, the arguments it takes from a trace and the models it takes."""

    sentence: str
    class_name: str
    arguments: tuple[str, ...]
    models: tuple[Need, ...] = ()
    module: str = _COLLECTIONS
    low: float = 0.0
    higher_is_better: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)
    translatable: bool = True  # False where RAGAs writes the prompt without its translatable parts
    library: str = ""  # the package behind RAGAs that computes it
    asks_again: bool = False  # whether RAGAs itself asks again after an unusable reply

    @property
    def needs(self) -> Needs:
        """What a trace must have, and which models are asked."""
        return frozenset({_NEED[name] for name in self.arguments if name in _NEED} | set(self.models))

    @property
    def is_legacy(self) -> bool:
        """Whether the class has RAGAs' older interface, which takes a sample."""
        return self.module != _COLLECTIONS


# A sentence that says so is none of the subject: what it shares with a reference is its words.
ABSTAINED = Gap("not_applicable", "the reader abstained, so there is no answer to compare; answer.abstention counts it")

_NEED: dict[str, Need] = {
    "response": "answer",
    "reference": "reference",
    "retrieved_contexts": "contexts",
    "whole_contexts": "contexts",
    "retrieved_context_ids": "contexts",
    "reference_contexts": "evidence",
    "reference_context_ids": "evidence",
}

# Measures that compare whole passages with whole reference contexts take passages as they were retrieved: a passage
# that the token budget cut to half would count as another text, whatever it holds.
_RAGAS_NAME = {"whole_contexts": "retrieved_contexts"}


def fill_arguments(spec: RagasSpec, trace: Trace) -> dict[str, Any] | Gap:
    """Return RAGAs' arguments for a trace that has what the metric needs, or why RAGAs could not score it."""
    arguments = {_RAGAS_NAME.get(name, name): _FILL[name](trace) for name in spec.arguments}
    if "reference_contexts" in arguments and not all(arguments["reference_contexts"]):
        return Gap("not_applicable", _no_context(trace.question.evidence))
    if "judge" not in spec.models and "response" in arguments and trace.answer is not None and trace.answer.abstained:
        return ABSTAINED
    if "judge" in spec.models and "response" in arguments and not arguments["response"].strip():
        if trace.answer is not None and trace.answer.abstained and not trace.question.answerable:
            return Gap("not_applicable", "the reader rightly said nothing")
        return Gap("failed", "the answer is empty")
    return arguments


def _no_context(evidence: Sequence[Evidence]) -> str:
    """Return why the text of some evidence is not known."""
    missing = next(item for item in evidence if not item.context)
    if missing.quote is None:
        place = "file" if missing.page is None else "page"
        return (
            f"the labels name a {place} of several passages and no quote, so which of them is the evidence is not known"
        )
    return (
        "where the evidence stands is not known: it was not found in the documents, or nobody looked for it, as "
        "Pipeline.run and Pipeline.locate do"
    )


def _response(trace: Trace) -> str:
    return trace.answer.text if trace.answer is not None else ""


def _retrieved_ids(trace: Trace) -> list[str]:
    unpaged = {item.source for item in trace.question.evidence if item.page is None}
    return [p.source if p.source in unpaged else _place(p.source, p.page) for p in trace.passages]


def _reference_ids(trace: Trace) -> list[str]:
    """Return the places of the evidence; of a file in which one item has no page, the file alone."""
    evidence = trace.question.evidence
    unpaged = {item.source for item in evidence if item.page is None}
    return [item.source if item.source in unpaged else _place(item.source, item.page) for item in evidence]


def _place(source: str, page: int | None) -> str:
    return f"{source}#{page}"


_FILL: dict[str, Callable[[Trace], Any]] = {
    "user_input": lambda trace: trace.question.text,
    "response": _response,
    "reference": lambda trace: trace.question.answers[0],
    "retrieved_contexts": lambda trace: [passage.text for passage in trace.passages],
    "whole_contexts": lambda trace: [passage.retrieved for passage in trace.passages],
    "retrieved_context_ids": _retrieved_ids,
    "reference_context_ids": _reference_ids,
    "reference_contexts": lambda trace: list(dict.fromkeys(item.context for item in trace.question.evidence)),
}
