"""The one table of RAGAs metrics: which class each name is, its settings, and which of its arguments a trace fills.

Names and definitions are RAGAs' own (Es et al. 2023 and its documentation), version 0.4.3; where a class has modes, the
mode that is not its default is part of the name. The non-LLM context metrics exist only in its older interface. What is
left out is for other tasks: agents, tools, SQL, tables, images, summaries, and rubrics that the user writes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_lab._kit.config_file import read_mapping
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
_PRECISION = "ragas.metrics._context_precision"
_RECALL = "ragas.metrics._context_recall"
_TEXTS = ("reference", "response")
_ALL_FOUR = ("user_input", "response", "reference", "retrieved_contexts")
_IDS = ("retrieved_context_ids", "reference_context_ids")
_JUDGE: tuple[Need, ...] = ("judge",)
_EMBEDDINGS: tuple[Need, ...] = ("embeddings",)
_BOTH = _JUDGE + _EMBEDDINGS
_READ_ANSWER = ("user_input", "response", "retrieved_contexts")
_COMPARED = ("user_input", "response", "reference")
_WHOLE = ("whole_contexts", "reference_contexts")
_SENTENCES = read_mapping(Path(__file__).with_name("ragas_sentences.yaml"))


@dataclass(frozen=True, slots=True)
class RagasSpec:
    """A RAGAs class, its settings, the arguments it takes from a trace and the models it takes."""

    class_name: str
    arguments: tuple[str, ...]
    models: tuple[Need, ...] = ()
    module: str = COLLECTIONS
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


SPECS: dict[str, RagasSpec] = {
    "semantic_similarity": RagasSpec("SemanticSimilarity", _TEXTS, _EMBEDDINGS, low=-1.0),
    "non_llm_context_precision": RagasSpec(
        "NonLLMContextPrecisionWithReference", _WHOLE, module=_PRECISION, library="rapidfuzz"
    ),
    "non_llm_context_recall": RagasSpec("NonLLMContextRecall", _WHOLE, module=_RECALL, library="rapidfuzz"),
    "rouge_score": RagasSpec("RougeScore", _TEXTS, library="rouge-score"),
    "string_presence": RagasSpec("StringPresence", _TEXTS),
    "exact_match": RagasSpec("ExactMatch", _TEXTS),
    "non_llm_string_similarity": RagasSpec("NonLLMStringSimilarity", _TEXTS, library="rapidfuzz"),
    "bleu_score": RagasSpec("BleuScore", _TEXTS, library="sacrebleu"),
    "chrf_score": RagasSpec("CHRFScore", _TEXTS, library="sacrebleu"),
    "quoted_spans_alignment": RagasSpec("QuotedSpansAlignment", ("response", "retrieved_contexts")),
    "id_based_context_precision": RagasSpec("IDBasedContextPrecision", _IDS, module=_PRECISION),
    "id_based_context_recall": RagasSpec("IDBasedContextRecall", _IDS, module=_RECALL),
    "faithfulness": RagasSpec("Faithfulness", _READ_ANSWER, _JUDGE),
    "answer_relevancy": RagasSpec("AnswerRelevancy", ("user_input", "response"), _BOTH, low=-1.0),
    "context_precision": RagasSpec("ContextPrecision", ("user_input", "reference", "retrieved_contexts"), _JUDGE),
    "context_recall": RagasSpec("ContextRecall", ("user_input", "retrieved_contexts", "reference"), _JUDGE),
    "context_relevance": RagasSpec("ContextRelevance", ("user_input", "retrieved_contexts"), _JUDGE, asks_again=True),
    "answer_correctness": RagasSpec("AnswerCorrectness", _COMPARED, _BOTH, low=-0.25),
    "context_utilization": RagasSpec("ContextUtilization", _READ_ANSWER, _JUDGE),
    "context_entity_recall": RagasSpec("ContextEntityRecall", ("reference", "retrieved_contexts"), _JUDGE),
    "noise_sensitivity": RagasSpec("NoiseSensitivity", _ALL_FOUR, _JUDGE, higher_is_better=False, translatable=False),
    "noise_sensitivity_irrelevant": RagasSpec(
        "NoiseSensitivity",
        _ALL_FOUR,
        _JUDGE,
        higher_is_better=False,
        translatable=False,
        settings={"mode": "irrelevant"},
    ),
    "factual_correctness": RagasSpec("FactualCorrectness", ("response", "reference"), _JUDGE),
    "factual_correctness_precision": RagasSpec(
        "FactualCorrectness", ("response", "reference"), _JUDGE, settings={"mode": "precision"}
    ),
    "factual_correctness_recall": RagasSpec(
        "FactualCorrectness", ("response", "reference"), _JUDGE, settings={"mode": "recall"}
    ),
    "answer_accuracy": RagasSpec("AnswerAccuracy", _COMPARED, _JUDGE, asks_again=True),
    "response_groundedness": RagasSpec(
        "ResponseGroundedness", ("response", "retrieved_contexts"), _JUDGE, asks_again=True
    ),
}


INFOS = tuple(
    MetricInfo(f"ragas.{name}", _SENTENCES[name], s.needs, s.low, 1.0, s.higher_is_better, s.translatable)
    for name, s in SPECS.items()
)
