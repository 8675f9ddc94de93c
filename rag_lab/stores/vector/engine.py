"""The search that all stores share: an engine proposes rows, wide enough for ties; the rows' own vectors order them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from rag_lab.errors import StoreError
from rag_lab.models.protocols import Vectors
from rag_lab.stores.vector.entries import Numbers
from rag_lab.stores.vector.rows import Rows, batches
from rag_lab.stores.vector.server import Server, answering
from rag_lab.stores.vector.vector_store import Cosines, Found, Positions

_TIE_MARGIN = 16  # neighbours fetched beyond k, to see whether a tie crosses the cut
_ROUNDING = 1e-5  # cosines of engines may differ by this from those in double precision
_QUERIES_AT_ONCE = 256


class SearchedRows(ABC):
    """Rows in a folder, and a search of which a subclass only writes `_nearest`."""

    exact: ClassVar[bool]

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def rows(self) -> Rows:
        """Vectors, labels and ids."""
        return Rows(self.path)

    @cached_property
    def server(self) -> Server | None:
        """Where the vectors are searched, or None where the engine works in the folder."""
        return Server.read(self.path)

    @property
    def labels(self) -> frozenset[str]:
        """The distinct labels of what is stored."""
        return frozenset(self.rows.labels)

    def search(self, vectors: Vectors, k: int, allowed: frozenset[str] | None = None) -> Found:
        """Return the nearest allowed ids to each row of `vectors` and their cosines; see `VectorStore`.

        Raises:
            StoreError: if the engine is not installed, or its server does not answer.
        """
        numbers = self.rows.numbers_of(allowed)
        n = self.rows.count(numbers)
        if not n:
            return [[] for _ in vectors], [[] for _ in vectors]
        ids: list[list[str]] = []
        cosines: list[list[float]] = []
        for part in batches(len(vectors), _QUERIES_AT_ONCE):
            with answering(self.server):
                rows, near = self._search(vectors[part], min(k, n), n, numbers)
            positions, scores = self.rows.copies.expand(rows, near, k)
            ids += [[self.rows.ids[position] for position in found] for found in positions]
            cosines += scores
        return ids, cosines

    def _search(self, queries: Vectors, k: int, n: int, numbers: Numbers | None) -> tuple[Positions, Cosines]:
        """Search wider until no tie crosses the cut at k, then score and order what was found."""
        rows, cosines = np.zeros((len(queries), k), np.int64), np.zeros((len(queries), k))
        pending = np.arange(len(queries))
        n_wanted = min(n, k + _TIE_MARGIN)
        while len(pending):
            found, near = self._nearest(queries[pending], n_wanted, numbers)
            short = found[:, -1] < 0
            if short.any():  # the engine gave up early
                found[short], near[short] = self.rows.scan(queries[pending[short]], n_wanted, numbers)
            self._refuse_others(found, numbers)
            whole = (near[:, -1] < near[:, k - 1] - _ROUNDING) | (n_wanted == n)
            done, pending = pending[whole], pending[~whole]
            rows[done], cosines[done] = self.rows.rank(queries[done], found[whole], k)
            n_wanted = min(n, 2 * n_wanted)
        return rows, cosines

    def _refuse_others(self, found: Positions, numbers: Numbers | None) -> None:
        """Refuse what is no row here, or one that is not allowed: the labels here decide, not the engine's copy."""
        if found.max(initial=0) < len(self.rows) and self.rows.have(found, numbers):
            return
        where = f" at {self.server.url}" if self.server else ""
        raise StoreError(
            f"The vector store{where} returned a child that it should not have: what it holds is not what was written; "
            "delete its collection, which is then filled again."
        )

    @abstractmethod
    def _nearest(self, queries: Vectors, n_wanted: int, numbers: Numbers | None) -> tuple[Positions, Cosines]:
        """Return the rows nearest to each query among those that have one of these labels (all where None).

        Returns:
            Rows and their cosines as the engine computes them, (n_queries, n_wanted) each, best first; row -1 where
            an engine found no more.
        """


class EngineStore(SearchedRows):
    """A `VectorStore` of which a subclass only writes `_fill` and `_nearest`."""

    @classmethod
    def build(cls, path: Path, ids: Sequence[str], vectors: Vectors, labels: Sequence[str], url: str = "") -> None:
        """Write a new store into the folder `path`; see `VectorStore`.

        Raises:
            StoreError: if the engine is not installed, or its server does not answer.
        """
        rows = Rows.write(path, ids, vectors, labels)
        if url:
            Server.write(path, url, rows)
        store = cls(path)
        with answering(store.server):
            store._fill()

    @classmethod
    def open(cls, path: Path) -> Self:
        """Return the store that `build` wrote, for reading."""
        return cls(path)

    @abstractmethod
    def _fill(self) -> None:
        """Write the engine's own files, from `self.rows`, and close them, so that the folder may be moved."""
