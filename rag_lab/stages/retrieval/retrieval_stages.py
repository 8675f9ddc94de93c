"""The stages of retrieval that a configuration asks for, and custom searches.

A custom search is called as `(query, k) -> ids or texts`, or pairs of one with a score; see `FoundChunks`. A class may
have `build(chunks)` instead, which is called with the children that an asker may see and returns such a function: once
for all who may see the same.
"""

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from threading import Thread
from typing import Any
from weakref import WeakKeyDictionary

from rag_lab._kit.custom_code import CustomCode, CustomCodeError, numbers
from rag_lab._kit.digest import digest
from rag_lab._kit.registry import Module, from_object
from rag_lab.access import Labels, access_label, allowed_labels, by_corpus
from rag_lab.corpus.chunk_store import FoundChunks
from rag_lab.corpus.corpus_index import CorpusIndex
from rag_lab.errors import ConfigError
from rag_lab.records import Hit, Level, Question, Trace
from rag_lab.stages.retrieval import search
from rag_lab.stages.retrieval.fusion import HYDE, Merge, fusion_stage
from rag_lab.stages.retrieval.select import SearchMmr
from rag_lab.stages.stage import Off, Outcome, Parts, Stage, module_stage, timed_call
from rag_lab.stages.steps import HYDE_WRITERS, SEARCHES
from rag_lab.stores.config import Unit
from rag_lab.stores.sparse import SPARSE

Found = tuple[int, tuple[tuple[str, float], ...]]  # how many results there were, and their children with scores

_MORE = 4  # times as many results are asked for where too few units are among them
_CHUNKS: WeakKeyDictionary[CorpusIndex, FoundChunks] = WeakKeyDictionary()
_BUILT: WeakKeyDictionary[CorpusIndex, dict[str, CustomCode | CustomCodeError]] = WeakKeyDictionary()
_ENTRY = "hits."  # before the name of a search, where its hits are on a trace


@dataclass(frozen=True)
class CustomSearcher:
    """Calls `code`, or what it makes of the children (`builds`), until k units that may be seen are found."""

    index: CorpusIndex
    code: CustomCode
    name: str
    level: Level
    builds: bool

    def ready(self, labels: Labels | None = None) -> CustomCode:
        """Return what is called with queries; it is built once for the children that have one of these labels."""
        if not self.builds:
            return self.code
        built = _BUILT.setdefault(self.index, {})
        seen = self.index.chunks.labels if labels is None else labels & self.index.chunks.labels
        key = digest([self.code.identity(), sorted(seen)])
        if key not in built:
            children = [
                child
                for child in self.index.chunks.children()
                if access_label(child.namespace, child.permissions) in seen
            ]
            try:
                built[key] = self.code.built(children)
            except CustomCodeError as error:
                built[key] = error
        ready = built[key]
        if isinstance(ready, CustomCodeError):
            raise ready
        return ready

    def search(self, texts: Sequence[str], k: int, allowed: Sequence[Labels | None]) -> list[list[Hit]]:
        """Return the first k units that were found for each text, best first."""
        lists: list[list[Hit]] = []
        for text, labels in zip(texts, allowed, strict=True):
            code, wanted, accept = self.ready(labels), k, partial(self._found, labels)
            while True:
                n, found = code.call(text, wanted, accept=accept)
                names, scores = [name for name, _ in found], [score for _, score in found]
                hits = self.index.units(names, scores, k, self.level, self.name)
                if len(hits) >= k or n < wanted or wanted >= self.index.manifest.n_children:
                    break
                wanted *= _MORE
            lists.append(hits)
        return lists

    def _found(self, labels: Labels | None, returned: Any) -> Found:
        """Return the children that the results mean, none where the asker may not see them.

        They are best first, with their scores; 1 / rank where they have none.
        """
        if self.index not in _CHUNKS:
            _CHUNKS[self.index] = FoundChunks(self.index.chunks)
        if isinstance(returned, str) or not isinstance(returned, Iterable):
            raise CustomCodeError(f"the search returned {type(returned).__name__} where a list of ids or texts is due")
        given = list(returned)
        results: list[tuple[Any, float]] = [(item, 1 / rank) for rank, item in enumerate(given, start=1)]
        if pairs := [item for item in given if isinstance(item, tuple | list) and len(item) == 2]:
            if len(pairs) < len(given):
                raise CustomCodeError("the search returned some results with a score and others without")
            scores = numbers([score for _, score in pairs], len(pairs), "the search")
            scored = zip([item for item, _ in pairs], scores, strict=True)
            results = sorted(scored, key=lambda item: -item[1])
        best: dict[str, float] = {}
        for result, score in results:
            if not isinstance(result, str) and not hasattr(result, "page_content"):
                raise CustomCodeError(f"the search returned {type(result).__name__} where an id or a text is due")
            units = _CHUNKS[self.index].units(result)
            if not units:
                shown = " ".join(str(getattr(result, "page_content", result)).split())[:80]
                raise CustomCodeError(f"the search returned {shown!r}, which is no chunk of this corpus")
            visible = (
                unit
                for unit in units
                if labels is None or access_label(unit[0].namespace, unit[0].permissions) in labels
            )
            for child in next(visible, []):
                best.setdefault(child.chunk_id, score)
        return len(results), tuple(best.items())


@dataclass(frozen=True)
class CustomSearch(search.TextSearch):
    """Search question by question, so that a call that gives nothing usable costs one."""

    searcher: CustomSearcher
    costly: bool = True  # False of what cannot be told apart from others, so that its results are not remembered

    batch_size = 8

    @property
    def code(self) -> CustomCode:
        """What is called."""
        return self.searcher.code

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Search for each trace."""
        search = super().run
        return [timed_call(lambda one: search([one])[0], trace) for trace in traces]


class LangChainSearch:
    """A `BaseRetriever` of LangChain's as a search, asked for k documents where it can be told how many."""

    version = 1
    deterministic = False  # nobody has said that it is

    def __init__(self, retriever: Any) -> None:
        self.retriever = retriever

    def __call__(self, query: str, k: int) -> list[Any]:
        """Return the documents, best first."""
        retriever, fields = self.retriever, type(self.retriever).model_fields
        if "search_kwargs" in fields:
            search = {**(retriever.search_kwargs or {}), "k": k}
            retriever = retriever.model_copy(update={"search_kwargs": search})
        elif "k" in fields:
            retriever = retriever.model_copy(update={"k": k})
        return list(retriever.invoke(query))


def is_retriever(given: Any) -> bool:
    """Tell whether `given` is a retriever of LangChain's, which is not imported to find out."""
    module = sys.modules.get("langchain_core.retrievers")
    return module is not None and isinstance(given, module.BaseRetriever)


def searches(parts: Parts) -> tuple[Stage, ...]:
    """Return the searches (those not made are off), what combines those by question, and the merge with HyDE."""
    retrieval, index, query = parts.retrieval, parts.index, parts.query
    weights, k, level = _weights(parts), retrieval.base_k, retrieval.level
    # One search applies the threshold itself; what combines several does it there.
    is_alone = "search" in parts.overrides or len(retrieval.weights) == 1
    least = retrieval.min_score if is_alone else None
    mmr = None
    if retrieval.diversity != "none":
        mmr = SearchMmr(index, parts.embedder, retrieval.fetch_k, retrieval.mmr_trade_off)
    dense = search.DenseSearcher(index, parts.embedder, level, "question")
    found: list[Stage] = [
        search.TextSearch(dense, index, k, "dense", least, mmr) if "dense" in weights else Off("search_dense")
    ]
    for name in SPARSE:
        units = retrieval.units if name == "tfidf" else "child"
        sparse = search.SparseSearcher(index, name, retrieval.analyzer, level, units)
        found.append(search.TextSearch(sparse, index, k, name, least) if name in weights else Off(f"search_{name}"))
    for encoded, role in search.ROLES.items():
        if encoded not in weights:
            found.append(Off(f"search_{encoded}"))
            continue
        searcher = search.EncodedSearcher(index, encoded, parts.encoder(role), level)
        found.append(search.TextSearch(searcher, index, k, encoded, least))
    replaced = parts.overrides.get("search")
    if replaced is None:
        modules = [SEARCHES.find(name) for name in retrieval.weights if name not in SEARCHES.built_in]
        modules = [replace(m, value=LangChainSearch(m.value)) if is_retriever(m.value) else m for m in modules]
    elif is_retriever(replaced):  # of an object in memory nobody knows what is in it: nothing is remembered
        modules = [Module(type(replaced).__name__, LangChainSearch(replaced))]
    else:
        modules = [from_object(replaced, SEARCHES)]
    for module in modules:
        builds = hasattr(module.value, "build")

        def custom(code: CustomCode, module: Module = module, builds: bool = builds) -> Stage:
            searcher = CustomSearcher(index, code, module.name, level, builds)
            return CustomSearch(searcher, index, k, module.name, least, costly=bool(module.source))

        stage = module_stage(SEARCHES, module, index, custom, "build" if builds else None)
        listed = [path.removeprefix(_ENTRY) for path in stage.writes if path.startswith(_ENTRY)]
        if not listed:
            raise ConfigError(f"The search {module.name!r} must say where its hits go: writes = ('hits.its_name',).")
        weights |= dict.fromkeys(listed, 1.0)
        found.append(stage)
    found.append(fusion_stage(parts, weights))
    if query.hyde == "none":
        return (*found, Off(search.RETRIEVE_HYDE), Merge(parts.rerank.input_limit))
    hypothetical = search.DenseSearcher(index, parts.embedder, level, "hypothetical")
    several = query.hyde_n > 1 and query.hyde_writer in HYDE_WRITERS.built_in  # a custom writer writes one
    least = least if "dense" in _weights(parts) else None  # a cosine, as it is there
    by_hyde = search.HydeSearch(hypothetical, index, retrieval.hyde_k, HYDE, least, mmr, several, query.hyde_with_query)
    return (*found, by_hyde, Merge(parts.rerank.input_limit, retrieval.merge))


def prepare(parts: Parts, stages: Sequence[Stage], questions: Iterable[Question] = ()) -> None:
    """Build what searches read for these questions, so that none is charged; an error of custom code is theirs."""
    weights, retrieval = _weights(parts), parts.retrieval
    if "dense" in weights or parts.query.hyde != "none":
        if not parts.index.has_vectors:  # what its chat models are asked is new, too, as a rule
            for model in (getattr(stage, "model", None) for stage in stages):
                if load_ahead := getattr(getattr(model, "inner", model), "load_ahead", None):
                    Thread(target=load_ahead, daemon=True).start()
        parts.index.ensure_vectors()
    corpora, known = parts.index.manifest.corpora, parts.index.chunks.labels
    visible = {allowed_labels(known, question) for question in questions} - {frozenset()} or {None}
    allowed = {part for some in visible for part in by_corpus(some, known, corpora)}
    for name in SPARSE:
        if name in weights:
            units: set[Unit] = {"child", retrieval.units if name == "tfidf" else "child"}
            for unit, labels in product(units, allowed):
                parts.index.sparse(name, retrieval.analyzer, unit, labels)
    for stage in stages:
        if isinstance(stage, search.TextSearch) and isinstance(stage.searcher, search.EncodedSearcher):
            stage.searcher.opened()
        if isinstance(stage, CustomSearch):
            with suppress(CustomCodeError):
                for labels in allowed:
                    stage.searcher.ready(labels)


def _weights(parts: Parts) -> dict[str, float]:
    """Return the built-in searches that are made, with their weights."""
    weights = {} if "search" in parts.overrides else parts.retrieval.weights
    return {name: weight for name, weight in weights.items() if name in SEARCHES.built_in}
