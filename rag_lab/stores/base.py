"""The contract of a vector store: built once in a folder, then only read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, Self

from rag_lab.models.base import Vectors

Found = tuple[list[list[str]], list[list[float]]]  # ids and their cosines, a list for each query, best first


class VectorStore(Protocol):
    """Nearest neighbours by cosine. The constructor takes the folder and only stores it; opening is lazy."""

    @classmethod
    def build(cls, path: Path, ids: Sequence[str], vectors: Vectors) -> None:
        """Write a new store of unit vectors, (n, dim) with n >= 1, into the folder `path`, which is made."""

    @classmethod
    def open(cls, path: Path) -> Self:
        """Return the store that `build` wrote, for reading."""

    def search(self, vectors: Vectors, k: int) -> Found:
        """Return the min(k, n) ids nearest to each row of `vectors`, (n_queries, dim), and their cosines.

        Best first; equal cosines in the order in which the ids were given to `build`.
        """
