"""The stages of retrieval that a configuration asks for."""

from __future__ import annotations

from typing import Literal

from rag_lab.stages.parts import Parts
from rag_lab.stages.retrieval.combine import Combine
from rag_lab.stages.retrieval.config import searches_vectors
from rag_lab.stages.retrieval.search import HYDE, Search
from rag_lab.stages.retrieval.searcher import DenseSearcher, SparseSearcher
from rag_lab.stages.retrieval.select import Select
from rag_lab.stages.stage import Stage
from rag_lab.stages.switched_off import Off
from rag_lab.stores.sparse.choose import SPARSE, SparseName
from rag_lab.stores.sparse.language import analyzer_for

_SEARCHES: tuple[Literal["dense"] | SparseName, ...] = ("dense", *SPARSE)


def searches(parts: Parts) -> tuple[Stage, ...]:
    """Return the searches by question, those that the mode does not make switched off, and what combines them."""
    retrieval = parts.retrieval
    normalization = "reciprocal_rank" if retrieval.mode == "rrf" else retrieval.normalization
    combine = Combine(retrieval.weights, normalization, retrieval.rrf_constant, retrieval.base_k)
    return (*(_search(name, parts) for name in _SEARCHES), combine)


def hyde_search(parts: Parts) -> Stage:
    """Return the search by hypothetical document."""
    if parts.query.hyde == "none":
        return Off("retrieve_hyde")
    return Search(_dense(parts, "hypothetical"), parts.index, parts.retrieval.hyde_k, HYDE)


def prepare(parts: Parts) -> None:
    """Build what the searches read, where it is missing: no question is charged with it."""
    if searches_vectors(parts.retrieval, parts.query):
        parts.index.ensure_vectors()
    for name in SPARSE:
        if name in parts.retrieval.weights:
            parts.index.sparse(name, analyzer_for(parts.retrieval.analyzer, ""))


def selection(parts: Parts) -> Stage:
    """Return what cuts and diversifies the ranked hits."""
    select = parts.select
    if not select.is_on:
        return Off("select")
    keep = 2 * parts.rerank.final_k
    return Select(parts.index, parts.embedder, select.cut, select.diversity, select.mmr_trade_off, keep)


def _search(name: Literal["dense"] | SparseName, parts: Parts) -> Stage:
    retrieval = parts.retrieval
    if name not in retrieval.weights:
        return Off(f"search_{name}")
    if name == "dense":
        return Search(_dense(parts, "question"), parts.index, retrieval.base_k, name)
    searcher = SparseSearcher(parts.index, name, analyzer_for(retrieval.analyzer, ""), retrieval.level)
    return Search(searcher, parts.index, retrieval.base_k, name)


def _dense(parts: Parts, by: Literal["question", "hypothetical"]) -> DenseSearcher:
    return DenseSearcher(parts.index, parts.embedder, parts.retrieval.level, parts.retrieval.min_similarity, by)
