"""What a search is: texts in, ranked units out, within what each asker may see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from rag_lab.access import Labels
from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.corpus.index.found_chunks import search_files
from rag_lab.models.limits.read_limit import unread_of_texts
from rag_lab.models.protocols import Embedder, Vectors
from rag_lab.records import Hit, Level
from rag_lab.stores.analyzer import AnalyzerChoice
from rag_lab.stores.config import Unit
from rag_lab.stores.sparse import SparseName
from rag_lab.stores.sparse import identity as sparse_identity

Rows = Sequence[int]


class Searcher(Protocol):
    """One way of finding units of a corpus by a text."""

    def identity(self) -> Mapping[str, Any]:
        """Everything that can change the results, as JSON values."""

    def search(self, texts: Sequence[str], k: int, allowed: Sequence[Labels | None]) -> list[list[Hit]]:
        """Return the k best units for each text, best first, among those with its `allowed` labels (None: all)."""


@dataclass(frozen=True)
class DenseSearcher:
    """Search by the cosine of embeddings.

    `by` says what the texts are: questions, or hypothetical documents, which are embedded as documents are (Gao et al.
    2022).
    """

    index: CorpusIndex
    embedder: Embedder
    level: Level = "parent"
    by: Literal["question", "hypothetical"] = "question"

    def identity(self) -> Mapping[str, Any]:
        """Index, its vectors, embedding model, level, and what is searched."""
        return {
            "index": self.index.digest,
            "vectors": dict(self.index.vectors_identity),
            "embedder": self.embedder.identity(),
            "level": self.level,
            "by": self.by,
        }

    def search(self, texts: Sequence[str], k: int, allowed: Sequence[Labels | None]) -> list[list[Hit]]:
        """Return the k units whose best child is nearest to each text."""
        embed = self.embedder.embed_queries if self.by == "question" else self.embedder.embed_documents
        return self.nearest(embed(texts), k, allowed)

    def nearest(self, vectors: Vectors, k: int, allowed: Sequence[Labels | None]) -> list[list[Hit]]:
        """Return the k units whose best child is nearest to each of the unit vectors, (n, dim)."""

        def within(rows: Rows, labels: Labels | None) -> list[list[Hit]]:
            return self.index.search(vectors[rows], k, labels, self.level, "dense" if self.by == "question" else "hyde")

        return _by_access(within, allowed)

    def unread_of_texts(self, texts: Sequence[str]) -> int:
        """Return how many tokens of these texts together the embedding model never reads."""
        return sum(unread_of_texts(self.embedder, texts, "query" if self.by == "question" else "document"))

    def unread_of_hits(self, hits: Sequence[Hit]) -> list[int]:
        """Return how many tokens of each hit's child were never embedded."""
        unread = self.index.unread
        return [0] * len(hits) if unread is None else unread.of_hits(hits)


@dataclass(frozen=True)
class SparseSearcher:
    """Search by the terms that texts share: the question with each child, or with each whole file.

    A file that is found stands for the child of it that shares most with the question.
    """

    index: CorpusIndex
    name: SparseName
    analyzer: AnalyzerChoice
    level: Level = "parent"
    units: Unit = "child"

    def identity(self) -> Mapping[str, Any]:
        """Index, level, and the method with its analyzer and what it compares."""
        sparse = dict(sparse_identity(self.name, self.index.analyzer(self.analyzer), self.units))
        return {"index": self.index.digest, "level": self.level, "sparse": sparse}

    def search(self, texts: Sequence[str], k: int, allowed: Sequence[Labels | None]) -> list[list[Hit]]:
        """Return the k units whose best child scores highest for each text."""

        def within(rows: Rows, labels: Labels | None) -> list[list[Hit]]:
            some = [texts[row] for row in rows]
            if self.units == "document":
                return search_files(self.index, self.name, self.analyzer, some, k, labels, self.level)
            return self.index.search_terms(self.name, self.analyzer, some, k, labels, self.level)

        return _by_access(within, allowed)


def _by_access(
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
