"""The stages of retrieval that a configuration asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

from rag_lab._kit.registry import Module, own
from rag_lab.errors import ConfigError
from rag_lab.stages.choose import code_of, stage_of, whole_stage
from rag_lab.stages.parts import Parts
from rag_lab.stages.retrieval.langchain_search import LangChainSearch, is_retriever
from rag_lab.stages.retrieval.own_fusion import FusionPlace
from rag_lab.stages.retrieval.own_search import OwnSearch, OwnSearcher
from rag_lab.stages.retrieval.own_selection import SelectPlace
from rag_lab.stages.retrieval.retrieval_kinds import FUSIONS, SEARCHES, SELECTIONS
from rag_lab.stages.retrieval.search import HYDE, Search
from rag_lab.stages.retrieval.searcher import DenseSearcher, SparseSearcher
from rag_lab.stages.stage import Stage
from rag_lab.stages.switched_off import Off
from rag_lab.stores.sparse.choose import SPARSE, SparseName
from rag_lab.stores.sparse.language import analyzer_for

_ENTRY = "hits."  # before the name of a search, where its hits are on a trace


def searches(parts: Parts) -> tuple[Stage, ...]:
    """Return the searches by question, those that the mode does not make switched off, and what combines them."""
    weights = _weights(parts)
    made: dict[str, Stage] = {
        name: SEARCHES.find(name).made(parts) if name in weights else Off(f"search_{name}")
        for name in SEARCHES.built_in
    }
    others = [_own_search(module, parts) for module in _modules(parts)]
    listed = {path.removeprefix(_ENTRY): 1.0 for stage in others for path in stage.writes if path.startswith(_ENTRY)}
    return (*made.values(), *others, _fusion(parts, weights | listed))


def hyde_search(parts: Parts) -> Stage:
    """Return the search by hypothetical document."""
    if parts.query.hyde == "none":
        return Off("retrieve_hyde")
    return Search(_dense(parts, "hypothetical"), parts.index, parts.retrieval.hyde_k, HYDE)


def prepare(parts: Parts, stages: Iterable[Stage]) -> None:
    """Build what the searches among `stages` read, where it is missing: no question is charged with it."""
    weights = _weights(parts)
    if "dense" in weights or parts.query.hyde != "none":
        parts.index.ensure_vectors()
    for name in SPARSE:
        if name in weights:
            parts.index.sparse(name, analyzer_for(parts.retrieval.analyzer, ""))
    for stage in stages:
        if isinstance(stage, OwnSearch):
            stage.prepare()


def selection(parts: Parts) -> Stage:
    """Return what selects from the ranked hits."""
    if not parts.selects:
        return Off("select")
    keep = 2 * parts.rerank.final_k
    return stage_of(SELECTIONS, "select", parts.select.name, parts, lambda: SelectPlace(parts.index, keep))


def dense(parts: Parts) -> Search:
    """Return the search by embeddings."""
    return Search(_dense(parts, "question"), parts.index, parts.retrieval.base_k, "dense")


def bm25(parts: Parts) -> Search:
    """Return the search by BM25."""
    return _sparse(parts, "bm25")


def tfidf(parts: Parts) -> Search:
    """Return the search by TF-IDF."""
    return _sparse(parts, "tfidf")


def _weights(parts: Parts) -> dict[str, float]:
    """Return the built-in searches that are made, with their weights."""
    given = {} if "search" in parts.given else parts.retrieval.weights
    return {name: weight for name, weight in given.items() if name in SEARCHES.built_in}


def _modules(parts: Parts) -> list[Module]:
    """Return the searches of one's own that are made."""
    if "search" not in parts.given:
        found = (SEARCHES.find(name) for name in parts.retrieval.weights if name not in SEARCHES.built_in)
        return [replace(m, made=LangChainSearch(m.made)) if is_retriever(m.made) else m for m in found]
    given = parts.given["search"]
    if is_retriever(given):  # of an object in memory nobody knows what is in it: no source, so nothing is remembered
        return [Module(type(given).__name__, LangChainSearch(given))]
    return [own(given, SEARCHES)]


def _own_search(module: Module, parts: Parts) -> Stage:
    stage = whole_stage(SEARCHES, module, ("hits",), parts.index)
    if stage is not None:
        if not any(path.startswith(_ENTRY) for path in stage.writes):
            raise ConfigError(f"The search {module.name!r} must say where its hits go: writes = ('hits.its_name',).")
        return stage
    builds = hasattr(module.made, "build")
    code = code_of(SEARCHES, module, "build" if builds else None)
    searcher = OwnSearcher(parts.index, code, module.name, parts.retrieval.level, builds)
    search = Search(searcher, parts.index, parts.retrieval.base_k, module.name)
    return OwnSearch(search, searcher, costly=bool(module.source))


def _fusion(parts: Parts, weights: Mapping[str, float]) -> Stage:
    k = parts.retrieval.base_k
    return stage_of(FUSIONS, "fusion", parts.retrieval.fusion, parts, lambda: FusionPlace(tuple(weights), k), weights)


def _sparse(parts: Parts, name: SparseName) -> Search:
    retrieval = parts.retrieval
    searcher = SparseSearcher(parts.index, name, analyzer_for(retrieval.analyzer, ""), retrieval.level)
    return Search(searcher, parts.index, retrieval.base_k, name)


def _dense(parts: Parts, by: Literal["question", "hypothetical"]) -> DenseSearcher:
    return DenseSearcher(parts.index, parts.embedder, parts.retrieval.level, parts.retrieval.min_similarity, by)
