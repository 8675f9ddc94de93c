"""The one table of RAGAs metrics: which class each name is, its settings, and which of its arguments a trace fills.

Names and definitions are RAGAs' own (Es et al. 2023 and its documentation), version 0.4.3; where a class has modes, the
mode that is not its default is part of the name. The non-LLM context metrics exist only in its older interface. What is
left out is for other tasks: agents, tools, SQL, tables, images, summaries, and rubrics that the user writes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_lab._kit.config_file import adapter_of, read_shipped
from rag_lab.evaluation.metric import Gap, MetricInfo, Need, Needs
from rag_lab.records import Evidence, Passage, Trace

COLLECTIONS = "ragas.metrics.collections"
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
    arguments = {_RAGAS_NAME.get(name, name): _FILL[name](trace) for name in spec.arguments}
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
    "retrieved_context_ids": lambda trace: _ids(trace, trace.passages),
    "reference_context_ids": lambda trace: _ids(trace, trace.question.evidence),
    "reference_contexts": lambda trace: list(dict.fromkeys(item.context for item in trace.question.evidence)),
}


SPECS = {name: adapter_of(RagasSpec).validate_python(values) for name, values in _METRICS.items()}
INFOS = tuple(
    MetricInfo(f"ragas.{name}", s.sentence, s.needs, s.low, 1.0, s.higher_is_better, s.translatable)
    for name, s in SPECS.items()
)
