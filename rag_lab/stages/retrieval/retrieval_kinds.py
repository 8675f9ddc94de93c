"""Searches, what combines them, and what selects from the ranked hits, by name."""

from __future__ import annotations

from rag_lab._kit.registry import BuiltIn, Kind

_ROOM = "rag_lab.stages.retrieval"

SEARCHES = Kind(
    "search",
    "rag_lab.searches",
    {
        "dense": BuiltIn(f"{_ROOM}.retrieval_stages:dense", "by the cosine of embeddings"),
        "bm25": BuiltIn(f"{_ROOM}.retrieval_stages:bm25", "by the terms that texts share, rare ones first"),
        "tfidf": BuiltIn(f"{_ROOM}.retrieval_stages:tfidf", "by the cosine of weighted terms"),
    },
    call="build(self, chunks)",
)
FUSIONS = Kind(
    "fusion",
    "rag_lab.fusions",
    {"weighted": BuiltIn(f"{_ROOM}.combine:weighted", "adds normalized scores, or reciprocal ranks, by weight")},
    call="__call__(self, lists, k)",
)
SELECTIONS = Kind(
    "selection",
    "rag_lab.selections",
    {"cut": BuiltIn(f"{_ROOM}.select:cut", "cuts at the knee and diversifies, as `select` says")},
    call="__call__(self, question, passages, scores)",
)
