"""The stages of retrieval that a configuration asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product

from rag_lab._kit.registry import Module, from_object
from rag_lab.access import allowed_labels
from rag_lab.errors import ConfigError
from rag_lab.records import Question
from rag_lab.stages.custom import code_of, is_whole, whole_stage
from rag_lab.stages.kinds import HYDE_WRITERS, SEARCHES
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
    retrieval, index, k = parts.retrieval, parts.index, parts.retrieval.base_k
    weights, least = _weights(parts), _least(parts)

    def sparse(name: SparseName) -> Stage:
        searcher = SparseSearcher(index, name, retrieval.analyzer, retrieval.level, _units(parts, name))
        return TextSearch(searcher, index, k, name, least)

    searcher = DenseSearcher(index, parts.embedder, retrieval.level, "question")
    made: dict[str, Callable[[], Stage]] = {
        "dense": lambda: TextSearch(searcher, index, k, "dense", least, _mmr(parts)),
        "bm25": lambda: sparse("bm25"),
        "tfidf": lambda: sparse("tfidf"),
    }
    ours = [make() if name in weights else Off(f"search_{name}") for name, make in made.items()]
    if "search" not in parts.overrides:
        modules = [SEARCHES.find(name) for name in retrieval.weights if name not in SEARCHES.built_in]
        modules = [replace(m, value=LangChainSearch(m.value)) if is_retriever(m.value) else m for m in modules]
    elif is_retriever(given := parts.overrides["search"]):
        # Of an object in memory nobody knows what is in it: no source, so nothing is remembered.
        modules = [Module(type(given).__name__, LangChainSearch(given))]
    else:
        modules = [from_object(given, SEARCHES)]
    others = [_custom_search(module, parts) for module in modules]
    listed = {path.removeprefix(_ENTRY): 1.0 for stage in others for path in stage.writes if path.startswith(_ENTRY)}
    return (*ours, *others, fusion_stage(parts, weights | listed))


def hyde_search(parts: Parts) -> Stage:
    """Return the search by hypothetical document."""
    query, index, k = parts.query, parts.index, parts.retrieval.hyde_k
    if query.hyde == "none":
        return Off(RETRIEVE_HYDE)
    min_score = _least(parts) if "dense" in _weights(parts) else None  # a cosine, as it is there
    dense = DenseSearcher(index, parts.embedder, parts.retrieval.level, "hypothetical")
    several = query.hyde_n > 1 and query.hyde_writer in HYDE_WRITERS.built_in  # a custom writer writes one
    return HydeSearch(dense, index, k, HYDE, min_score, _mmr(parts), several, query.hyde_with_query)


def merge(parts: Parts) -> Merge:
    """Return the stage for a pipeline; without HyDE there is one list, and nothing to be put together."""
    return Merge(parts.rerank.input_limit, "rrf" if parts.query.hyde == "none" else parts.retrieval.merge)


def prepare(parts: Parts, stages: Iterable[Stage], questions: Iterable[Question] = ()) -> None:
    """Build what the searches among `stages` read for these questions, where it is missing: none is charged with it."""
    weights = _weights(parts)
    if "dense" in weights or parts.query.hyde != "none":
        parts.index.ensure_vectors()
    allowed = {allowed_labels(parts.index.chunks.labels, question) for question in questions} - {frozenset()} or {None}
    for name in SPARSE:
        if name in weights:
            for units, labels in product({"child", _units(parts, name)}, allowed):
                parts.index.sparse(name, parts.retrieval.analyzer, units, labels)
    for stage in stages:
        if isinstance(stage, CustomSearch):
            stage.prepare(allowed)


def _weights(parts: Parts) -> dict[str, float]:
    """Return the built-in searches that are made, with their weights."""
    given = {} if "search" in parts.overrides else parts.retrieval.weights
    return {name: weight for name, weight in given.items() if name in SEARCHES.built_in}


def _least(parts: Parts) -> float | None:
    """Return the threshold where there is one search, which then applies it; what combines several does it there."""
    is_alone = "search" in parts.overrides or len(parts.retrieval.weights) == 1
    return parts.retrieval.min_score if is_alone else None


def _units(parts: Parts, name: SparseName) -> Unit:
    return parts.retrieval.units if name == "tfidf" else "child"


def _mmr(parts: Parts) -> SearchMmr | None:
    retrieval = parts.retrieval
    if retrieval.diversity == "none":
        return None
    return SearchMmr(parts.index, parts.embedder, retrieval.fetch_k, retrieval.mmr_trade_off)


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
