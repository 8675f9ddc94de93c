"""The contract of a sparse index: built once in a folder, then only read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, Self

from rag_lab.stores.sparse.analyzer import Analyzer
from rag_lab.stores.vector.vector_store import Found


class SparseIndex(Protocol):
    """Texts ranked by the terms that they share with a query. Opening is lazy: the constructor only stores."""

    @classmethod
    def build(cls, path: Path, ids: Sequence[str], texts: Sequence[str], analyzer: Analyzer) -> None:
        """Write a new index of n >= 1 texts into the folder `path`, which is made; `ids` are in their order."""

    @classmethod
    def open(cls, path: Path) -> Self:
        """Return the index that `build` wrote, for reading."""

    def search(self, texts: Sequence[str], k: int) -> Found:
        """Return the ids of the k texts that score highest for each query, and their scores, best first.

        Only texts that share a term with the query are found, so there may be fewer than k, or none. Equal scores stand
        in the order in which `build` had the ids.
        """
