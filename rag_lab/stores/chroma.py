"""Chroma's persistent store: an HNSW graph by cosine (Malkov and Yashunin 2018), set for recall before speed.

At the sizes of a workbench (up to some ten thousand children) a wide search finds the true neighbours, so that a
variant's score does not depend on the luck of the graph.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from rag_lab.models.base import Vectors
from rag_lab.stores.base import Found

_COLLECTION = "children"
_TIE_MARGIN = 16  # neighbours fetched beyond k, to see whether a tie crosses the cut
_QUERIES_AT_ONCE = 256
_HNSW = {
    "space": "cosine",
    "ef_construction": 200,
    "max_neighbors": 32,
    "ef_search": 800,
    "num_threads": 1,  # parallel insertion makes another graph each time
    "batch_size": 100,
    "sync_threshold": 100,  # writes the graph to disk; otherwise every opening builds it again from the log
}


class ChromaStore:
    """One Chroma collection in a folder. Several processes may read it at the same time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def build(cls, path: Path, ids: Sequence[str], vectors: Vectors) -> None:
        """Write a new store into the folder `path`, and close it, so that the folder may be moved."""
        path.mkdir(parents=True)
        (path / "ids.json").write_text(json.dumps(list(ids)), encoding="utf-8")
        client = _client(path)
        collection = client.create_collection(_COLLECTION, embedding_function=None, configuration={"hnsw": _HNSW})
        for part in _batches(len(ids), client.get_max_batch_size()):
            collection.add(ids=list(ids[part]), embeddings=vectors[part])
        client.close()

    @classmethod
    def open(cls, path: Path) -> Self:
        """Return the store that `build` wrote, for reading."""
        return cls(path)

    def search(self, vectors: Vectors, k: int) -> Found:
        """Return the min(k, n) nearest ids to each row and their cosines, best first, ties by order of insertion."""
        ids: list[list[str]] = []
        cosines: list[list[float]] = []
        for part in _batches(len(vectors), _QUERIES_AT_ONCE):
            found = self._query(vectors[part], k)
            ids += [row[:k] for row in found[0]]
            cosines += [row[:k] for row in found[1]]
        return ids, cosines

    def _query(self, vectors: Vectors, k: int) -> Found:
        """Search wider until no tie crosses the cut at k, then order ties by insertion."""
        n = len(self._positions)
        fetch = min(n, k + _TIE_MARGIN)
        while True:
            reply = self._collection.query(query_embeddings=vectors, n_results=fetch, include=["distances"])
            distances = reply["distances"]
            if fetch == n or all(row[-1] > row[min(k, len(row)) - 1] for row in distances):
                break
            fetch = min(n, 2 * fetch)
        return self._ordered(reply["ids"], distances)

    def _ordered(self, ids: list[list[str]], distances: list[list[float]]) -> Found:
        ranked = [
            sorted(zip(row, far, strict=True), key=lambda pair: (pair[1], self._positions[pair[0]]))
            for row, far in zip(ids, distances, strict=True)
        ]
        return [[name for name, _ in row] for row in ranked], [[1 - far for _, far in row] for row in ranked]

    @cached_property
    def _collection(self) -> Any:
        return _client(self.path).get_collection(_COLLECTION, embedding_function=None)

    @cached_property
    def _positions(self) -> dict[str, int]:
        ids = json.loads((self.path / "ids.json").read_text(encoding="utf-8"))
        return {name: position for position, name in enumerate(ids)}


def _client(path: Path) -> Any:
    import chromadb
    from chromadb.config import Settings

    return chromadb.PersistentClient(str(path), settings=Settings(anonymized_telemetry=False))


def _batches(n: int, size: int) -> list[slice]:
    return [slice(start, start + size) for start in range(0, n, size)]
