"""The stages of retrieval that a configuration asks for."""

from __future__ import annotations

from typing import Literal

from rag_lab.config import PipelineConfig
from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.models.protocols import Embedder
from rag_lab.stages.retrieval.combine import Combine
from rag_lab.stages.retrieval.search import HYDE, Search
from rag_lab.stages.retrieval.searcher import DenseSearcher, SparseSearcher
from rag_lab.stages.retrieval.select import Select
from rag_lab.stages.stage import Stage
from rag_lab.stages.switched_off import Off
from rag_lab.stores.sparse.choose import SPARSE, SparseName
from rag_lab.stores.sparse.language import analyzer_for

_SEARCHES: tuple[Literal["dense"] | SparseName, ...] = ("dense", *SPARSE)


def searches(config: PipelineConfig, index: CorpusIndex, embedder: Embedder) -> tuple[Stage, ...]:
    """Return the searches by question, those that the mode does not make switched off, and what combines them."""
    retrieval = config.retrieval
    normalization = "reciprocal_rank" if retrieval.mode == "rrf" else retrieval.normalization
    combine = Combine(retrieval.weights, normalization, retrieval.rrf_constant, retrieval.base_k)
    return (*(_search(name, config, index, embedder) for name in _SEARCHES), combine)


def hyde_search(config: PipelineConfig, index: CorpusIndex, embedder: Embedder) -> Stage:
    """Return the search by hypothetical document."""
    if config.query.hyde == "none":
        return Off("retrieve_hyde")
    return Search(_dense(config, index, embedder, "hypothetical"), index, config.retrieval.hyde_k, HYDE)


def prepare(config: PipelineConfig, index: CorpusIndex) -> None:
    """Build what the searches of `config` read, where it is missing: no question is charged with it."""
    if config.searches_vectors:
        index.ensure_vectors()
    retrieval = config.retrieval
    for name in SPARSE:
        if name in retrieval.weights:
            index.sparse(name, analyzer_for(retrieval.analyzer, ""))


def selection(config: PipelineConfig, index: CorpusIndex, embedder: Embedder) -> Stage:
    """Return what cuts and diversifies the ranked hits."""
    select = config.select
    if not select.is_on:
        return Off("select")
    return Select(index, embedder, select.cut, select.diversity, select.mmr_trade_off, keep=2 * config.rerank.final_k)


def _search(
    name: Literal["dense"] | SparseName, config: PipelineConfig, index: CorpusIndex, embedder: Embedder
) -> Stage:
    retrieval = config.retrieval
    if name not in retrieval.weights:
        return Off(f"search_{name}")
    if name == "dense":
        return Search(_dense(config, index, embedder, "question"), index, retrieval.base_k, name)
    analyzer = analyzer_for(retrieval.analyzer, "")
    return Search(SparseSearcher(index, name, analyzer, retrieval.level), index, retrieval.base_k, name)


def _dense(
    config: PipelineConfig, index: CorpusIndex, embedder: Embedder, by: Literal["question", "hypothetical"]
) -> DenseSearcher:
    return DenseSearcher(index, embedder, config.retrieval.level, config.retrieval.min_similarity, by)
