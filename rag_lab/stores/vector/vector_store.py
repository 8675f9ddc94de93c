"""The contract of a vector store: built once in a folder, then only read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from rag_lab.models.protocols import Vectors

Positions = npt.NDArray[np.int64]  # rows of a store; -1 is no row
Cosines = npt.NDArray[np.float64]
Found = tuple[list[list[str]], list[list[float]]]  # ids and their scores, a list for each query, best first


class VectorStore(Protocol):
    """Nearest neighbours by cosine. The constructor takes the folder and only stores it; opening is lazy."""

    exact: ClassVar[bool]  # whether the true neighbours are always found; their recall is measured where it is False

    @classmethod
    def build(cls, path: Path, ids: Sequence[str], vectors: Vectors, labels: Sequence[str], url: str = "") -> None:
        """Write a new store of unit vectors into the folder `path`, which is made and may be moved afterwards.

        Args:
            path: the folder.
            ids: n >= 1 names, each once.
            vectors: (n, dim).
            labels: n access labels, as `access.access_label` makes them.
            url: the server that holds the vectors; "" keeps them in the folder.
        """

    @classmethod
    def open(cls, path: Path) -> Self:
        """Return the store that `build` wrote, for reading."""

    @property
    def labels(self) -> frozenset[str]:
        """The distinct labels of what is stored."""

    def search(self, vectors: Vectors, k: int, allowed: frozenset[str] | None = None) -> Found:
        """Return the ids nearest to each row of `vectors`, (n_queries, dim), and their cosines.

        Best first; equal cosines in the order in which the ids were given to `build`. Only ids whose label is in
        `allowed` are searched (all where it is None), so a list has min(k, number of these) entries.
        """
