"""The one table of RAGAs metrics: which class each name is, and which of its arguments a trace fills.

Names and definitions are RAGAs' own (Es et al. 2023 and its documentation), version 0.4.3. The two non-LLM context
metrics exist only in its older interface.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_lab.evaluation.metric import Gap, MetricInfo, Need, Needs
from rag_lab.records import Trace

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
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def needs(self) -> Needs:
        """What a trace must have, and which models are asked."""
        return frozenset({_NEED[name] for name in self.arguments if name in _NEED} | set(self.models))

    @property
    def is_legacy(self) -> bool:
        """Whether the class has RAGAs' older interface, which takes a sample."""
        return self.module != _COLLECTIONS


_NEED: dict[str, Need] = {
    "response": "answer",
    "reference": "reference",
    "retrieved_contexts": "contexts",
    "whole_contexts": "contexts",
    "reference_contexts": "evidence",
}

# Measures that compare whole passages with whole reference contexts take passages as they were retrieved: a passage
# that the token budget cut to half would count as another text, whatever it holds.
_RAGAS_NAME = {"whole_contexts": "retrieved_contexts"}

SPECS: dict[str, RagasSpec] = {
    "semantic_similarity": RagasSpec(
        "Cosine of the embeddings of answer and reference.",
        "SemanticSimilarity",
        ("reference", "response"),
        ("embeddings",),
        low=-1.0,
    ),
    "non_llm_context_precision": RagasSpec(
        "Average precision of the context's passages, relevant where the Levenshtein similarity to a reference context "
        "is at least 0.5.",
        "NonLLMContextPrecisionWithReference",
        ("whole_contexts", "reference_contexts"),
        module="ragas.metrics._context_precision",
    ),
    "non_llm_context_recall": RagasSpec(
        "Share of the reference contexts to which a passage of the context has a Levenshtein similarity above 0.5.",
        "NonLLMContextRecall",
        ("whole_contexts", "reference_contexts"),
        module="ragas.metrics._context_recall",
    ),
    "rouge_score": RagasSpec(
        "ROUGE-L F-measure of answer and reference, stemmed.", "RougeScore", ("reference", "response")
    ),
    "string_presence": RagasSpec(
        "1 where the answer holds the reference word for word (case counts), else 0.",
        "StringPresence",
        ("reference", "response"),
    ),
    "faithfulness": RagasSpec(
        "Share of the answer's statements that the judge finds supported by the context.",
        "Faithfulness",
        ("user_input", "response", "retrieved_contexts"),
        ("judge",),
    ),
    "answer_relevancy": RagasSpec(
        "Mean cosine of the question and three questions that the judge writes to the answer; 0 where it is evasive.",
        "AnswerRelevancy",
        ("user_input", "response"),
        ("judge", "embeddings"),
        low=-1.0,
    ),
    "context_precision": RagasSpec(
        "Average precision of the context's passages, relevant where the judge finds one useful for the reference.",
        "ContextPrecision",
        ("user_input", "reference", "retrieved_contexts"),
        ("judge",),
    ),
    "context_recall": RagasSpec(
        "Share of the reference's statements that the judge attributes to the context.",
        "ContextRecall",
        ("user_input", "retrieved_contexts", "reference"),
        ("judge",),
    ),
    "context_relevance": RagasSpec(
        "Relevance of the context to the question, 0, 1 or 2 by two prompts to the judge, averaged and halved.",
        "ContextRelevance",
        ("user_input", "retrieved_contexts"),
        ("judge",),
    ),
    "answer_correctness": RagasSpec(
        "0.75 times the F1 of statements shared with the reference, by the judge, plus 0.25 times the cosine of both.",
        "AnswerCorrectness",
        ("user_input", "response", "reference"),
        ("judge", "embeddings"),
        low=-0.25,
    ),
}

INFOS = tuple(MetricInfo(f"ragas.{name}", spec.sentence, spec.needs, spec.low) for name, spec in SPECS.items())


def fill_arguments(spec: RagasSpec, trace: Trace) -> dict[str, Any] | Gap:
    """Return RAGAs' arguments for a trace that has what the metric needs, or why RAGAs could not score it."""
    arguments = {_RAGAS_NAME.get(name, name): _FILL[name](trace) for name in spec.arguments}
    if "reference_contexts" in arguments and not all(arguments["reference_contexts"]):
        return Gap("not_applicable", "the text of the evidence was not found in the documents")
    if "judge" in spec.models and "response" in arguments and not arguments["response"].strip():
        if trace.answer is not None and trace.answer.abstained and not trace.question.answerable:
            return Gap("not_applicable", "the reader rightly said nothing")
        return Gap("failed", "the answer is empty")
    return arguments


def _response(trace: Trace) -> str:
    return trace.answer.text if trace.answer is not None else ""


_FILL: dict[str, Callable[[Trace], Any]] = {
    "user_input": lambda trace: trace.question.text,
    "response": _response,
    "reference": lambda trace: trace.question.answers[0],
    "retrieved_contexts": lambda trace: [passage.text for passage in trace.passages],
    "whole_contexts": lambda trace: [passage.retrieved for passage in trace.passages],
    "reference_contexts": lambda trace: list(dict.fromkeys(item.context for item in trace.question.evidence)),
}
