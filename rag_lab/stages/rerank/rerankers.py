"""The rerankers by name."""

from __future__ import annotations

from rag_lab._kit.registry import BuiltIn, Kind

_ROOM = "rag_lab.stages.rerank"

RERANKERS = Kind(
    "reranker",
    "rag_lab.rerankers",
    {
        "none": BuiltIn(f"{_ROOM}.keep_order:keep_order", "keeps the order of the merge"),
        "cross_encoder": BuiltIn(
            f"{_ROOM}.pair_rerank:by_cross_encoder",
            "a model that reads question and passage together",
            "sentence_transformers",
            "sentence-transformers",
        ),
        "query_likelihood": BuiltIn(
            f"{_ROOM}.pair_rerank:by_query_likelihood",
            "how likely a language model finds the question after the passage (Sachan et al. 2022)",
            "transformers",
        ),
    },
    call="__call__(self, question, passages)",
)
