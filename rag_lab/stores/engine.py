"""The search that all stores share: an engine proposes rows, wide enough for ties; the rows' own vectors order them.

Vectors may lie on a server, which may have lost them since they were written.
"""

import hashlib
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self
from urllib.parse import urlsplit

import numpy as np
from filelock import FileLock

from rag_lab.errors import RagLabError, StoreError
from rag_lab.models.protocols import Vectors
from rag_lab.redaction import one_line
from rag_lab.stores.rows import Cosines, Found, Numbers, Positions, Rows, batches

_FILE = "server.json"
_LOGGER = logging.getLogger(__name__)
_TIE_MARGIN = 16  # neighbours fetched beyond k, to see whether a tie crosses the cut
_ROUNDING = 1e-5  # cosines of engines may differ by this from those in double precision
_QUERIES_AT_ONCE = 256


@dataclass(frozen=True)
class Server:
    """A collection on a server. Its name is the digest of what it holds, so that equal stores share it."""

    url: str
    collection: str

    @classmethod
    def write(cls, path: Path, url: str, rows: Rows) -> Self:
        """Note in the folder `path` that `rows` lie at `url`, and return where."""
        content = hashlib.sha256(json.dumps([rows.ids, rows.labels]).encode())
        content.update(rows.label_numbers.tobytes())
        content.update(rows.vectors.data.cast("B"))
        server = cls(url, f"rag_lab_{content.hexdigest()[:40]}")
        (path / _FILE).write_text(json.dumps(asdict(server)), encoding="utf-8")
        return server

    @property
    def address(self) -> tuple[str, int, bool]:
        """The host, the port (that of the scheme where the URL names none), and whether the connection is encrypted."""
        parts = urlsplit(self.url)
        tls = parts.scheme == "https"
        return parts.hostname or "", parts.port or (443 if tls else 80), tls


@contextmanager
def answering(server: Server | None) -> Iterator[None]:
    """Turn whatever a server's client raises inside into one sentence; without a server, change nothing."""
    try:
        yield
    except RagLabError:
        raise
    except Exception as error:  # clients pass on what their transport raises: time-outs, refusals, protocol errors
        if server is None:
            raise
        reason = one_line(str(error)) or type(error).__name__
        raise StoreError(
            f"The vector store at {server.url} failed: {reason}; is it running, and is store.url right?"
        ) from error


class SearchedRows(ABC):
    """Rows in a folder, and a search of which a subclass only writes `_nearest`."""

    exact: ClassVar[bool]  # whether the true neighbours are always found; their recall is measured where it is False

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def rows(self) -> Rows:
        """Vectors, labels and ids."""
        return Rows(self.path)

    @cached_property
    def server(self) -> Server | None:
        """Where the vectors are searched, or None where the engine works in the folder."""
        path = self.path / _FILE
        return Server(**json.loads(path.read_bytes())) if path.exists() else None

    @property
    def labels(self) -> frozenset[str]:
        """The distinct labels of what is stored."""
        return frozenset(self.rows.labels)

    def search(self, vectors: Vectors, k: int, allowed: frozenset[str] | None = None) -> Found:
        """Return the ids nearest to each row of `vectors`, (n_queries, dim), and their cosines.

        Best first; equal cosines in the order in which `build` had the ids. Only ids whose label is in `allowed` are
        searched (all where it is None), so a list has min(k, number of these) entries.
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
            positions, scores = self.rows.expand(rows, near, k)
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
            is_known = found.max(initial=0) < len(self.rows)
            if not is_known or (numbers is not None and not np.isin(self.rows.label_numbers[found], numbers).all()):
                where = f" at {self.server.url}" if self.server else ""  # the labels here decide, not the engine's copy
                raise StoreError(
                    f"The vector store{where} returned a child that it should not have: what it holds is not what was "
                    "written; delete its collection, which is then filled again."
                )
            whole = (near[:, -1] < near[:, k - 1] - _ROUNDING) | (n_wanted == n)
            done, pending = pending[whole], pending[~whole]
            rows[done], cosines[done] = self.rows.rank(queries[done], found[whole], k)
            n_wanted = min(n, 2 * n_wanted)
        return rows, cosines

    @abstractmethod
    def _nearest(self, queries: Vectors, n_wanted: int, numbers: Numbers | None) -> tuple[Positions, Cosines]:
        """Return the rows nearest to each query among those that have one of these labels (all where None).

        Returns:
            Rows and their cosines as the engine computes them, (n_queries, n_wanted) each, best first; row -1 where
            an engine found no more.
        """


class EngineStore(SearchedRows):
    """A vector store, built once in a folder, then only read; a subclass only writes `_fill` and `_nearest`."""

    @classmethod
    def build(cls, path: Path, ids: Sequence[str], vectors: Vectors, labels: Sequence[str], url: str = "") -> None:
        """Write a new store of unit vectors into the folder `path`, which is made and may be moved afterwards.

        There are n >= 1 ids, each once, (n, dim) vectors and n access labels, as `access.access_label` makes them; the
        vectors lie on the server at `url`, or in the folder where it is "".
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


class ServedStore(EngineStore):
    """An `EngineStore` that may lie on a server: a subclass writes `_nearest` and the three methods below."""

    def _fill(self) -> None:
        """Build the collection, unless it is there in full: one that a killed build left is built again."""
        n_rows = None if self.server is None else self._n_rows(self.server)
        if n_rows == len(self.rows):
            return
        if self.server is not None and n_rows is not None:
            self._delete(self.server)
        self._write(self.server)

    def _served(self, server: Server) -> Server:
        """Return the server that is searched, its collection filled again where the server lost some or all of it."""
        if self._n_rows(server) == len(self.rows):
            return server
        with FileLock(f"{self.path}.lock"):
            if self._n_rows(server) != len(self.rows):
                _LOGGER.warning("%s at %s is not whole; it is filled again.", server.collection, server.url)
                self._fill()
        return server

    @abstractmethod
    def _write(self, server: Server | None) -> None:
        """Build the collection, which is not there, from `self.rows`: on the server, or in the folder where None."""

    @abstractmethod
    def _n_rows(self, server: Server) -> int | None:
        """Return how many rows the collection has, None where there is no such collection."""

    @abstractmethod
    def _delete(self, server: Server) -> None:
        """Delete the collection."""


class ExactStore(EngineStore):
    """Compares every query with every allowed vector, in memory: the reference for the other stores."""

    exact: ClassVar[bool] = True

    def _fill(self) -> None:
        """Nothing: the rows are the store."""

    def _nearest(self, queries: Vectors, n_wanted: int, numbers: Numbers | None) -> tuple[Positions, Cosines]:
        return self.rows.scan(queries, n_wanted, numbers)
