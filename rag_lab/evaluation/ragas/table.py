"""The one table of RAGAs metrics: which class each name is, and which of its arguments a trace fills.

Names and definitions are RAGAs' own (Es et al. 2023 and its documentation), version 0.4.3; where a class has modes, the
mode that is not its default is part of the name. The non-LLM context metrics exist only in its older interface. What is
left out is for other tasks: agents, tools, SQL, tables, images, summaries, and rubrics that the user writes.
"""

from __future__ import annotations

from rag_lab.evaluation.metric import MetricInfo
from rag_lab.evaluation.ragas.spec import RagasSpec

_PRECISION = "ragas.metrics._context_precision"
_RECALL = "ragas.metrics._context_recall"
_TEXTS = ("reference", "response")
_ALL_FOUR = ("user_input", "response", "reference", "retrieved_contexts")
_IDS = ("retrieved_context_ids", "reference_context_ids")

SPECS: dict[str, RagasSpec] = {
    "semantic_similarity": RagasSpec(
        "Cosine of the embeddings of answer and reference.",
        "SemanticSimilarity",
        _TEXTS,
        ("embeddings",),
        low=-1.0,
    ),
    "non_llm_context_precision": RagasSpec(
        "Average precision of the context's passages, relevant where the Levenshtein similarity to a reference context "
        "is at least 0.5.",
        "NonLLMContextPrecisionWithReference",
        ("whole_contexts", "reference_contexts"),
        module=_PRECISION,
        library="rapidfuzz",
    ),
    "non_llm_context_recall": RagasSpec(
        "Share of the reference contexts to which a passage of the context has a Levenshtein similarity above 0.5.",
        "NonLLMContextRecall",
        ("whole_contexts", "reference_contexts"),
        module=_RECALL,
        library="rapidfuzz",
    ),
    "rouge_score": RagasSpec(
        "ROUGE-L F-measure of answer and reference, stemmed.", "RougeScore", _TEXTS, library="rouge-score"
    ),
    "string_presence": RagasSpec(
        "1 where the answer holds the reference word for word (case counts), else 0.",
        "StringPresence",
        _TEXTS,
    ),
    "exact_match": RagasSpec(
        "1 where the answer is the reference character for character, else 0.", "ExactMatch", _TEXTS
    ),
    "non_llm_string_similarity": RagasSpec(
        "Levenshtein similarity of answer and reference, normalized by the longer.",
        "NonLLMStringSimilarity",
        _TEXTS,
        library="rapidfuzz",
    ),
    "bleu_score": RagasSpec(
        "BLEU of the answer's first sentence, each sentence of the reference being one reference.",
        "BleuScore",
        _TEXTS,
        library="sacrebleu",
    ),
    "chrf_score": RagasSpec(
        "chrF of answer and reference: F2 of character 6-grams.", "CHRFScore", _TEXTS, library="sacrebleu"
    ),
    "quoted_spans_alignment": RagasSpec(
        "Share of the answer's quoted spans of three words or more that stand in the context; 1 without any.",
        "QuotedSpansAlignment",
        ("response", "retrieved_contexts"),
    ),
    "id_based_context_precision": RagasSpec(
        "Share of the places (file and page) of the context that are places of the evidence.",
        "IDBasedContextPrecision",
        _IDS,
        module=_PRECISION,
    ),
    "id_based_context_recall": RagasSpec(
        "Share of the places (file and page) of the evidence that are places of the context.",
        "IDBasedContextRecall",
        _IDS,
        module=_RECALL,
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
        asks_again=True,
    ),
    "answer_correctness": RagasSpec(
        "0.75 times the F1 of statements shared with the reference, by the judge, plus 0.25 times the cosine of both.",
        "AnswerCorrectness",
        ("user_input", "response", "reference"),
        ("judge", "embeddings"),
        low=-0.25,
    ),
    "context_utilization": RagasSpec(
        "Average precision of the context's passages, relevant where the judge finds one useful for the answer given.",
        "ContextUtilization",
        ("user_input", "response", "retrieved_contexts"),
        ("judge",),
    ),
    "context_entity_recall": RagasSpec(
        "Share of the entities that the judge names in the reference that it also names in the context; 0 without any.",
        "ContextEntityRecall",
        ("reference", "retrieved_contexts"),
        ("judge",),
    ),
    "noise_sensitivity": RagasSpec(
        "Share of the answer's statements that are wrong by the reference and supported by a relevant passage.",
        "NoiseSensitivity",
        _ALL_FOUR,
        ("judge",),
        higher_is_better=False,
        translatable=False,
    ),
    "noise_sensitivity_irrelevant": RagasSpec(
        "Share of the answer's statements that are wrong by the reference and supported by irrelevant passages alone.",
        "NoiseSensitivity",
        _ALL_FOUR,
        ("judge",),
        higher_is_better=False,
        translatable=False,
        settings={"mode": "irrelevant"},
    ),
    "factual_correctness": RagasSpec(
        "F1 of the claims of answer and reference, by the judge each checked against the other; two decimals.",
        "FactualCorrectness",
        ("response", "reference"),
        ("judge",),
    ),
    "factual_correctness_precision": RagasSpec(
        "Share of the answer's claims that the reference supports, by the judge; two decimals.",
        "FactualCorrectness",
        ("response", "reference"),
        ("judge",),
        settings={"mode": "precision"},
    ),
    "factual_correctness_recall": RagasSpec(
        "Supported claims of the answer by these and the claims of the reference that the answer lacks; two decimals.",
        "FactualCorrectness",
        ("response", "reference"),
        ("judge",),
        settings={"mode": "recall"},
    ),
    "answer_accuracy": RagasSpec(
        "Agreement of answer and reference, 0, 2 or 4 by two prompts to the judge, averaged and quartered.",
        "AnswerAccuracy",
        ("user_input", "response", "reference"),
        ("judge",),
        asks_again=True,
    ),
    "response_groundedness": RagasSpec(
        "How far the context supports the answer, 0, 1 or 2 by two prompts to the judge, averaged and halved.",
        "ResponseGroundedness",
        ("response", "retrieved_contexts"),
        ("judge",),
        asks_again=True,
    ),
}

INFOS = tuple(
    MetricInfo(f"ragas.{name}", s.sentence, s.needs, s.low, 1.0, s.higher_is_better, s.translatable)
    for name, s in SPECS.items()
)
