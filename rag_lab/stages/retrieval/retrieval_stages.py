"""The stages of retrieval that a configuration asks for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Literal

from rag_lab._kit.registry import Module, from_object
from rag_lab.access import allowed_labels
from rag_lab.errors import ConfigError
from rag_lab.records import Question
from rag_lab.stages.custom import code_of, is_whole, whole_stage
from rag_lab.stages.kinds import SEARCHES
from rag_lab.stages.parts import Parts
from rag_lab.stages.retrieval.custom_search import CustomSearch, CustomSearcher, LangChainSearch, is_retriever
from rag_lab.stages.retrieval.fusion import HYDE, Merge, fusion_stage
from rag_lab.stages.retrieval.search import RETRIEVE_HYDE, DenseSearcher, HydeSearch, SparseSearcher, TextSearch
from rag_lab.stages.retrieval.select import SearchMmr
from rag_lab.stages.stage import Off, Stage
from rag_lab.stores.config import Unit
from rag_lab.stores.sparse import SPARSE, SparseName

_ENTRY = "hits."  # before the name of a search, where its hits are on a trace


def searches(parts: Parts) -> tuple[Stage, ...]:
    """Return the searches by question, those that the mode does not make switched off, and what combines them."""
    weights = _weights(parts)
    made: dict[str, Stage] = {
        name: SEARCHES.find(name).value(parts) if name in weights else Off(f"search_{name}")
        for name in SEARCHES.built_in
    }
    others = [_custom_search(module, parts) for module in _modules(parts)]
    listed = {path.removeprefix(_ENTRY): 1.0 for stage in others for path in stage.writes if path.startswith(_ENTRY)}
    return (*made.values(), *others, fusion_stage(parts, weights | listed))


def hyde_search(parts: Parts) -> Stage:
    """Return the search by hypothetical document."""
    if parts.query.hyde == "none":
        return Off(RETRIEVE_HYDE)
    min_score = _least(parts) if "dense" in _weights(parts) else None  # a cosine, as it is there
    query, dense = parts.query, _dense(parts, "hypothetical")
    several, k = query.writes_several, parts.retrieval.hyde_k
    return HydeSearch(dense, parts.index, k, HYDE, min_score, _mmr(parts), several, query.hyde_with_query)


def merge(parts: Parts) -> Merge:
    """Return the stage for a pipeline; without HyDE there is one list, and nothing to be put together."""
    return Merge(parts.rerank.input_limit, "rrf" if parts.query.hyde == "none" else parts.retrieval.merge)


def prepare(parts: Parts, stages: Iterable[Stage], questions: Iterable[Question] = ()) -> None:
    """Build what the searches among `stages` read for these questions, where it is missing: none is charged with it."""
    weights = _weights(parts)
    if "dense" in weights or parts.query.hyde != "none":
        parts.index.ensure_vectors()
    allowed = {allowed_labels(parts.index.labels, question) for question in questions} - {frozenset()} or {None}
    for name in SPARSE:
        if name in weights:
            for units, labels in product({"child", _units(parts, name)}, allowed):
                parts.index.sparse(name, parts.retrieval.analyzer, units, labels)
    for stage in stages:
        if isinstance(stage, CustomSearch):
            stage.prepare(allowed)


def dense(parts: Parts) -> TextSearch:
    """Return the search by embeddings."""
    return TextSearch(
        _dense(parts, "question"), parts.index, parts.retrieval.base_k, "dense", _least(parts), _mmr(parts)
    )


def bm25(parts: Parts) -> TextSearch:
    """Return the search by BM25."""
    return _sparse(parts, "bm25")


def tfidf(parts: Parts) -> TextSearch:
    """Return the search by TF-IDF."""
    return _sparse(parts, "tfidf")


def _weights(parts: Parts) -> dict[str, float]:
    """Return the built-in searches that are made, with their weights."""
    given = {} if "search" in parts.overrides else parts.retrieval.weights
    return {name: weight for name, weight in given.items() if name in SEARCHES.built_in}


def _modules(parts: Parts) -> list[Module]:
    """Return the custom searches that are made."""
    if "search" not in parts.overrides:
        found = (SEARCHES.find(name) for name in parts.retrieval.weights if name not in SEARCHES.built_in)
        return [replace(m, value=LangChainSearch(m.value)) if is_retriever(m.value) else m for m in found]
    given = parts.overrides["search"]
    if is_retriever(given):  # of an object in memory nobody knows what is in it: no source, so nothing is remembered
        return [Module(type(given).__name__, LangChainSearch(given))]
    return [from_object(given, SEARCHES)]


def _custom_search(module: Module, parts: Parts) -> Stage:
    if is_whole(module):
        stage = whole_stage(SEARCHES, module, ("hits",), parts.index)
        if not any(path.startswith(_ENTRY) for path in stage.writes):
            raise ConfigError(f"The search {module.name!r} must say where its hits go: writes = ('hits.its_name',).")
        return stage
    builds = hasattr(module.value, "build")
    code = code_of(SEARCHES, module, "build" if builds else None)
    searcher = CustomSearcher(parts.index, code, module.name, parts.retrieval.level, builds)
    k, is_remembered = parts.retrieval.base_k, bool(module.source)
    return CustomSearch(searcher, parts.index, k, module.name, _least(parts), costly=is_remembered)


def _least(parts: Parts) -> float | None:
    """Return the threshold where there is one search, which then applies it; what combines several does it there."""
    is_alone = "search" in parts.overrides or len(parts.retrieval.weights) == 1
    return parts.retrieval.min_score if is_alone else None


def _sparse(parts: Parts, name: SparseName) -> TextSearch:
    retrieval = parts.retrieval
    searcher = SparseSearcher(parts.index, name, retrieval.analyzer, retrieval.level, _units(parts, name))
    return TextSearch(searcher, parts.index, retrieval.base_k, name, _least(parts))


def _units(parts: Parts, name: SparseName) -> Unit:
    return parts.retrieval.units if name == "tfidf" else "child"


def _mmr(parts: Parts) -> SearchMmr | None:
    retrieval = parts.retrieval
    if retrieval.diversity == "none":
        return None
    return SearchMmr(parts.index, parts.embedder, retrieval.fetch_k, retrieval.mmr_trade_off)


def _dense(parts: Parts, by: Literal["question", "hypothetical"]) -> DenseSearcher:
    return DenseSearcher(parts.index, parts.embedder, parts.retrieval.level, by)
