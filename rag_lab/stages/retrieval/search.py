"""The searches: by the question and its other phrasings, or by hypothetical documents, within what an asker may see.

Texts are searched by one vector each, by their terms, or as a model encodes them in more than a vector each: `late`, by
tokens; `splade`, by words.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np

from rag_lab._kit.digest import digest, whole_folder
from rag_lab._kit.observability import span
from rag_lab._kit.wording import counted
from rag_lab.access import Labels, allowed_labels, by_corpus
from rag_lab.corpus.build_index import SEARCHED
from rag_lab.corpus.chunk_store import best_units
from rag_lab.corpus.corpus_index import CorpusIndex
from rag_lab.errors import ModelError
from rag_lab.models.protocols import Embedder, Vectors, unit_vectors
from rag_lab.models.truncation import truncated_of
from rag_lab.records import Hit, Level, Trace
from rag_lab.stages.retrieval.fusion import reciprocal_rank_fusion, scoring
from rag_lab.stages.retrieval.select import SearchMmr, diversified
from rag_lab.stages.stage import ACCESS, BuiltInStage, Outcome, fields_of
from rag_lab.stores.config import Unit
from rag_lab.stores.encoded import ENCODED, FORMAT, EncodedIndex, EncodedName
from rag_lab.stores.sparse import AnalyzerChoice, SparseName
from rag_lab.stores.sparse import identity as sparse_identity

RETRIEVE_HYDE = "retrieve_hyde"
_QUICK_CHILDREN = 20_000  # a search of so many by words takes .7 ms; to look its result up .35, and to store it .4

Rows = Sequence[int]


@dataclass(frozen=True)
class DenseSearcher:
    """Search by the cosine of embeddings of questions, or of hypothetical documents (Gao et al. 2022), as `by` says."""

    index: CorpusIndex
    embedder: Embedder
    level: Level = "parent"
    by: Literal["question", "hypothetical"] = "question"

    def identity(self) -> Mapping[str, Any]:
        """Index, its vectors, embedding model, level, and what is searched."""
        return {**fields_of(self), "vectors": dict(self.index.vectors_identity)}

    def search(self, texts: Sequence[str], k: int, allowed: Sequence[Labels | None]) -> list[list[Hit]]:
        """Return the k units whose best child is nearest to each text, best first, with its labels (None: all)."""
        embed = self.embedder.embed_queries if self.by == "question" else self.embedder.embed_documents
        return self.nearest(embed(texts), k, allowed)

    def nearest(self, vectors: Vectors, k: int, allowed: Sequence[Labels | None]) -> list[list[Hit]]:
        """Return the k units whose best child is nearest to each of the unit vectors, (n, dim)."""
        step = "dense" if self.by == "question" else "hyde"
        return by_access(lambda rows, labels: self.index.search(vectors[rows], k, labels, self.level, step), allowed)

    def truncation(self, texts: Sequence[str], hits: Sequence[Hit], more: int = 0) -> tuple[str, int]:
        """Say in words, and as a number, which tokens of texts searched by (and `more`) and of hits had no effect."""
        kind: Literal["query", "document"] = "query" if self.by == "question" else "document"
        searched_by = more + sum(truncated_of(self.embedder, texts, kind))
        truncated = self.index.truncation
        cut = [] if truncated is None else [n for n in truncated.of_hits(hits) if n]
        sentences = [f"{counted(searched_by, 'token')} of what is searched by were not read"] if searched_by else []
        if cut:
            sentences.append(f"of {len(cut)} of {len(hits)} chunks found, {sum(cut):,} tokens were never embedded")
        return "; ".join(sentences), searched_by + sum(cut)


@dataclass(frozen=True)
class SparseSearcher:
    """Search by the terms shared with each child, or each whole file, which stands for the child that shares most."""

    index: CorpusIndex
    name: SparseName
    analyzer: AnalyzerChoice
    level: Level = "parent"
    units: Unit = "child"

    def identity(self) -> Mapping[str, Any]:
        """Index, level, and the method with its analyzer and what it compares."""
        sparse = dict(sparse_identity(self.name, self.index.analyzer(self.analyzer), self.units))
        found = {"index": self.index.digest, "level": self.level, "sparse": sparse}
        return {**found, **self.index.contexts.words.identity()}

    def search(self, texts: Sequence[str], k: int, allowed: Sequence[Labels | None]) -> list[list[Hit]]:
        """Return the k units whose best child scores highest for each text."""
        find = partial(self.index.search_terms, self.name, self.analyzer)
        return by_access(
            lambda rows, labels: find([texts[row] for row in rows], k, labels, self.level, self.units), allowed
        )


def by_access(
    search: Callable[[Rows, Labels | None], list[list[Hit]]], allowed: Sequence[Labels | None]
) -> list[list[Hit]]:
    """Search once for each set of labels: askers with the same rights share a search."""
    groups: dict[Labels | None, list[int]] = {}
    for row, labels in enumerate(allowed):
        groups.setdefault(labels, []).append(row)
    hits: list[list[Hit]] = [[] for _ in allowed]
    for labels, rows in groups.items():
        if labels is None or labels:
            for row, found in zip(rows, search(rows, labels), strict=True):
                hits[row] = found
    return hits


@dataclass(frozen=True)
class Search(BuiltInStage):
    """Find the k best units for each trace, among those that its asker may see; they become its `hits` of this search.

    Hits below `min_score` are left out of each list, and `mmr` chooses among what is left of more than k.
    """

    searcher: Any  # with `search`, and fields that hold whatever can change its results
    index: CorpusIndex
    k: int
    search: str
    min_score: float | None = None
    mmr: SearchMmr | None = None

    VERSION = 4
    batch_size = 256
    costly = True

    @property
    def writes(self) -> tuple[str, ...]:
        """The list that is filled."""
        return (f"hits.{self.search}",)

    def found(self, hits: Sequence[Hit], reason: str = "", truncated: int = 0, seconds: float | None = None) -> Outcome:
        """Return the outcome of a trace for which these hits were found."""
        return Outcome({f"hits.{self.search}": tuple(hits)}, reason=reason, truncated_tokens=truncated, seconds=seconds)

    def kept(self, find: Callable[[int], list[list[Hit]]]) -> Sequence[Sequence[Hit]]:
        """Find so many units that there is something to choose from; return of each list what the search hands on."""
        lists = find(self.k if self.mmr is None else max(self.k, self.mmr.fetch_k))
        enough = [scoring(hits, self.min_score) for hits in lists]
        if self.mmr is None:
            return enough
        relevance = [[hit.scores[self.search] for hit in hits] for hits in enough]
        return diversified(self.index, self.mmr.embedder, enough, relevance, self.k, self.mmr.trade_off)

    def in_each_corpus(
        self, find: Callable[[Rows, int, Sequence[Labels | None]], list[list[Hit]]], allowed: Sequence[Labels | None]
    ) -> list[list[Hit]]:
        """Return what is found for each row; several corpora are searched side by side, and merged by rank.

        `find` takes rows, of which some may come more than once, how many units are wanted, and a set of labels a row.
        """
        corpora, labels = self.index.manifest.corpora if allowed else (), self.index.chunks.labels
        parts = [by_corpus(some, labels, corpora) for some in allowed]
        rows = [row for row, some in enumerate(parts) for _ in some]
        flat = [one for some in parts for one in some]
        lists = iter(self.kept(lambda k: find(rows, k, flat)) if flat else [])
        each = [[next(lists) for _ in some] for some in parts]
        return [reciprocal_rank_fusion(one, self.k) if len(one) > 1 else [*chain(*one)] for one in each]


@dataclass(frozen=True)
class TextSearch(Search):
    """Search by the question and its other phrasings, whose lists are merged by reciprocal rank."""

    reads = ("search_query", "phrasings", *ACCESS)

    @property
    def name(self) -> str:
        """`search_` and the name of the search."""
        return f"search_{self.search}"

    @property
    def is_quick(self) -> bool:
        """Whether a search takes no longer than to store its result and look it up: by words, among few children."""
        return isinstance(self.searcher, SparseSearcher) and self.index.manifest.n_children <= _QUICK_CHILDREN

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Search all texts of the batch in one call."""
        texts = [[text for text in (trace.search_query, *trace.phrasings) if text] for trace in traces]
        labels = self.index.chunks.labels if any(texts) else frozenset()
        allowed = [allowed_labels(labels, trace.question) for trace, t in zip(traces, texts, strict=True) for _ in t]
        flat = [text for some in texts for text in some]
        search = self.searcher.search
        lists = iter(self.in_each_corpus(lambda rows, k, some: search([flat[row] for row in rows], k, some), allowed))
        outcomes = []
        for some in texts:
            found = [next(lists) for _ in some]
            hits = reciprocal_rank_fusion(found, self.k) if len(found) > 1 else [hit for one in found for hit in one]
            if not found:
                outcomes.append(self.found((), "nothing to search by", seconds=0.0))
            elif isinstance(self.searcher, DenseSearcher):
                outcomes.append(self.found(hits, *self.searcher.truncation(some, hits)))
            else:
                explain = getattr(self.searcher, "explain", None)
                outcomes.append(self.found(hits, explain(some[0]) if explain else ""))
        return outcomes


@dataclass(frozen=True)
class HydeSearch(Search):
    """Search by the mean of the embeddings of a trace's hypothetical documents, which are embedded as documents are.

    Gao et al. 2022, "Precise zero-shot dense retrieval without relevance labels", equations 7 and 8. `several` says
    that there may be other documents beside the first, `with_query` that what is searched counts as one more.
    """

    searcher: DenseSearcher
    several: bool = False
    with_query: bool = False

    name = RETRIEVE_HYDE

    @property
    def reads(self) -> tuple[str, ...]:
        """The documents, what is searched where it counts, and what the asker may see."""
        others = ("other_hypotheticals",) if self.several else ()
        return ("hypothetical", *others, *(("search_query",) if self.with_query else ()), *ACCESS)

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Search for all traces of the batch that have a document in one call."""
        routed = [trace for trace in traces if trace.hypothetical]
        outcomes = {id(trace): self.found((), "nothing to search by", seconds=0.0) for trace in traces}
        if routed:
            embedder, labels = self.searcher.embedder, self.index.chunks.labels
            allowed = [allowed_labels(labels, trace.question) for trace in routed]
            texts = [trace.hypotheticals for trace in routed]
            queries = [trace.search_query or "" for trace in routed]
            rows = iter(embedder.embed_documents([text for some in texts for text in some]))
            sums = [np.sum(list(islice(rows, len(some))), axis=0) for some in texts]
            if self.with_query:
                sums = [total + query for total, query in zip(sums, embedder.embed_queries(queries), strict=True)]
            means = unit_vectors(np.stack(sums))  # what each trace is searched by, (n, dim)
            lists = self.in_each_corpus(lambda rows, k, some: self.searcher.nearest(means[rows], k, some), allowed)
            for trace, hits, query in zip(routed, lists, queries, strict=True):
                more = sum(truncated_of(embedder, [query], "query")) if self.with_query else 0
                outcomes[id(trace)] = self.found(hits, *self.searcher.truncation(trace.hypotheticals, hits, more))
        return [outcomes[id(trace)] for trace in traces]


ROLES: Mapping[EncodedName, str] = {"late": "late_interaction", "splade": "sparse"}  # of the model that encodes
_WORDS = 12  # of a question, that are shown
_OPEN: WeakKeyDictionary[CorpusIndex, dict[Path, EncodedIndex]] = WeakKeyDictionary()


@dataclass(frozen=True)
class EncodedSearcher:
    """Search by what `model` makes of the question and of each child; the index of it is built when first asked for."""

    index: CorpusIndex
    name: EncodedName
    model: Any
    level: Level = "parent"

    def identity(self) -> Mapping[str, Any]:
        """Index, what stands before its children, level, and the method with its model."""
        return {**fields_of(self), "context": self.index.contexts.identity()}

    def folder(self) -> Path:
        """Return where the encoded children lie; they may not be there."""
        method = ENCODED[self.name].method
        if not hasattr(self.model, method):
            sentence = f"retrieval.mode {self.name} needs a model with the method {method}"
            raise ModelError(f"{sentence}, and {self.model!r} has none.")
        made_of = digest({"format": FORMAT, "model": dict(self.model.identity()), **self.index.contexts.identity()})
        return self.index.path / SEARCHED / f"{self.name}-{made_of[:32]}"

    def opened(self) -> EncodedIndex:
        """Return the index of the children, built where it is missing, once for a process."""
        if self.index.contexts.model is not None:
            self.index.searched_children()  # only then it is known which sentences of context are for now
        folder, known = self.folder(), _OPEN.setdefault(self.index, {})
        if folder not in known:
            with whole_folder(folder) as partial:  # processes that want it at the same time build it once
                if partial:
                    ENCODED[self.name].write(partial, self.model, self.index.searched_children())
            known[folder] = ENCODED[self.name](folder, self.model)
        return known[folder]

    def search(self, texts: Sequence[str], k: int, allowed: Sequence[Labels | None]) -> list[list[Hit]]:
        """Return the k units whose best child scores highest for each text."""
        encoded = self.opened()
        with span(f"search {self.name}", {"rag_lab.queries": len(texts), "rag_lab.k": k}):
            return by_access(
                lambda rows, labels: best_units(
                    self.index.chunks,
                    self.level,
                    encoded.find([texts[row] for row in rows], labels),
                    len(rows),
                    k,
                    self.name,
                ),
                allowed,
            )

    def explain(self, text: str) -> str:
        """Return the words by which a text was searched, the weightiest first; '' where it was not by words."""
        if self.name != "splade" or not hasattr(self.model, "words"):
            return ""
        words = self.model.words(self.model.term_weights("query", [text]))[:_WORDS]
        return f"searched by {', '.join(f'{word} {weight:.1f}' for word, weight in words)}" if words else ""
