"""Vectors in a folder, and the search that all stores share: an engine proposes rows, the rows' own vectors order them.

A row is a distinct vector with its access label; the ids that have it are its copies. The engine gets each row once: a
graph of near neighbours (HNSW) loses its way among copies, which fill each other's lists of neighbours.

Engines add up in different orders, so the cosines of equal vectors differ in the seventh digit from engine to engine.
So an engine is asked for more than is wanted, wide enough for ties. What it found is scored once more here, in double
precision, and rounded to what single precision can tell: every exact store returns the same list, ties included.

Vectors may lie on a server, which may have lost them since they were written. As int8, each by its largest number, they
take a quarter of the bytes. `binary` keeps signs as well, one bit a number: a search counts in how many bits query and
row differ (Hamming), and only the nearest rows by that are compared as int8. Queries stay float32.
"""

import hashlib
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt
from filelock import FileLock

from rag_lab.errors import RagLabError, StoreError
from rag_lab.models.protocols import Vectors, as_int8
from rag_lab.redaction import one_line
from rag_lab.stores.config import VectorKind

Positions = npt.NDArray[np.int64]  # rows of a store; -1 is no row
Cosines = npt.NDArray[np.float64]
Nearest = tuple[Positions, Cosines]  # of each query, (n_queries, n)
Found = tuple[list[list[str]], list[list[float]]]  # ids and their scores, a list for each query, best first
Numbers = tuple[int, ...]  # labels by their position in `Rows.labels`

KEYS_FILE, _KEY_BYTES = "keys.bin", 16  # of each row: by them equal vectors with equal labels are found
KEPT_FILE = "kept.json"  # the share of near neighbours that quantized vectors keep near
_SERVER_FILE = "server.json"
_LOGGER = logging.getLogger(__name__)
_TIE_MARGIN = 16  # neighbours fetched beyond k, to see whether a tie crosses the cut
_ROUNDING = 1e-5  # cosines of engines may differ by this from those in double precision
_QUERIES_AT_ONCE = 256
_DIGITS = 7
_SCANNED_AT_ONCE = 65_536
# A vector of each id; or earlier rows, the place of each id in these and in new ones after them, and these in order.
OfIds = Vectors | tuple["Rows", Positions, Vectors]


class Rows:
    """Vectors and labels by row, and ids by position, in a folder; vectors stay on disk and are mapped into memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # (n, dim), in the order in which the ids first have them.
        self.quantized = QuantizedVectors(path) if (path / INT8_FILE).exists() else None
        self.vectors: Any = self.quantized  # they are taken as float32 either way
        self.signs = self.quantized if self.quantized and self.quantized.is_binary else None
        if self.quantized is None:
            self.vectors = np.load(path / "vectors.npy", mmap_mode="r", allow_pickle=False)
        self.ids: list[str] = json.loads((path / "ids.json").read_text(encoding="utf-8"))  # at each position
        self.labels: list[str] = json.loads((path / "labels.json").read_text(encoding="utf-8"))  # the distinct ones
        self.label_numbers: npt.NDArray[np.int32] = np.load(path / "labels.npy", allow_pickle=False)  # of each row
        self._row_of: Positions = np.load(path / "rows.npy", allow_pickle=False)  # of each position
        # The positions, those of row 0 first, in order within a row; and where those of each row begin.
        self._copies: tuple[Positions, Positions] | None = None
        if len(self._row_of) > len(self):
            by_row = np.argsort(self._row_of, kind="stable")
            self._copies = by_row, np.searchsorted(self._row_of[by_row], np.arange(len(self) + 1))

    @classmethod
    def write(
        cls, path: Path, ids: Sequence[str], vectors: OfIds, labels: Sequence[str], kind: VectorKind = "float32"
    ) -> "Rows":
        """Write the rows of these ids, which each have a vector and a label, into the folder `path`, which is made."""
        before, places, new = vectors if isinstance(vectors, tuple) else (None, np.arange(len(vectors)), vectors)
        if not len(ids) == len(places) == len(labels) > 0:
            raise ValueError(f"one vector and one label an id: {len(ids)}, {len(places)}, {len(labels)}")
        path.mkdir(parents=True)
        written = (before.path / KEYS_FILE).read_bytes() if before else b""
        keys = [written[start : start + _KEY_BYTES] for start in range(0, len(written), _KEY_BYTES)]
        n_before, new, numbers = len(keys), np.ascontiguousarray(new, np.float32), dict[bytes, int]()
        for position in np.flatnonzero(places >= n_before).tolist():
            content = new[places[position] - n_before].tobytes() + labels[position].encode()
            keys.append(hashlib.blake2b(content, digest_size=_KEY_BYTES).digest())
        rows = np.array([numbers.setdefault(keys[place], len(numbers)) for place in places.tolist()])
        (path / KEYS_FILE).write_bytes(b"".join(numbers))
        firsts = np.unique(rows, return_index=True)[1]
        if before:
            taken = places[firsts]
            header = {"descr": "<f4", "fortran_order": False, "shape": (len(taken), before.vectors.shape[1])}
            with (path / "vectors.npy").open("wb") as file:
                np.lib.format.write_array_header_1_0(file, header)
                for run in np.split(taken, np.flatnonzero((np.diff(taken) != 1) | (taken[1:] >= n_before)) + 1):
                    start, end = run[[0, -1]] + [0, 1]
                    some = before.vectors[start:end] if start < n_before else new[start - n_before : end - n_before]
                    file.write(some.data)
        elif kind == "float32":
            np.save(path / "vectors.npy", new if len(firsts) == len(new) else new[firsts], allow_pickle=False)
        else:
            kept = new[firsts]
            whole = as_int8(kept)[0]
            lengths = np.linalg.norm(whole.astype(np.float32), axis=1)
            np.save(path / INT8_FILE, whole, allow_pickle=False)
            np.save(path / "lengths.npy", np.where(lengths > 0, lengths, 1), allow_pickle=False)
        if kind == "binary":
            np.save(path / "signs.npy", np.ascontiguousarray(words_of_signs(kept).T), allow_pickle=False)
        np.save(path / "rows.npy", rows, allow_pickle=False)
        distinct = {label: number for number, label in enumerate(dict.fromkeys(labels[first] for first in firsts))}
        label_numbers = np.array([distinct[labels[first]] for first in firsts], np.int32)
        np.save(path / "labels.npy", label_numbers, allow_pickle=False)
        (path / "labels.json").write_text(json.dumps(list(distinct)), encoding="utf-8")
        (path / "ids.json").write_text(json.dumps(list(ids)), encoding="utf-8")
        built = cls(path)
        if kind != "float32":
            share = neighbours_kept(kept, lambda queries, k: built.scan(queries, k, None)[0])
            (path / KEPT_FILE).write_text(json.dumps(share), encoding="utf-8")
        return built

    def __len__(self) -> int:
        return int(self.vectors.shape[0])

    def joined(self, ids: Sequence[str], new_ids: Sequence[str], new: Vectors) -> OfIds:
        """Return the vectors of some ids: those that are new, in the same order, and of others those here."""
        row_of = dict(zip(self.ids, self._row_of.tolist(), strict=True))
        row_of |= {one: len(self) + n for n, one in enumerate(new_ids)}
        return self, np.array([row_of[one] for one in ids]), new

    def mask(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Return (n,): whether each position has one of these labels."""
        wanted = np.zeros(len(self.labels), np.bool_)
        wanted[list(numbers)] = True
        return wanted[self.label_numbers]

    def scan(self, queries: Vectors, n_wanted: int, numbers: Numbers | None) -> Nearest:
        """Return the nearest rows with these labels, and cosines in single precision: (n_queries, n_wanted) each."""
        positions = np.full((len(queries), 0), -1, np.int64)
        cosines = np.zeros((len(queries), 0))
        allowed = np.arange(len(self)) if numbers is None else np.flatnonzero(self.mask(numbers))
        signs = self.signs
        n_best = n_wanted if signs is None else n_wanted * RESCORED
        for part in batches(len(allowed), _SCANNED_AT_ONCE):  # so that a scan needs little memory
            block = allowed[part]
            rows = part if numbers is None else block
            near = queries @ self.vectors[rows].T if signs is None else signs.alike(queries, rows)
            if near.shape[1] <= n_best:
                best = np.broadcast_to(np.arange(near.shape[1]), near.shape)
            else:  # the columns of the largest, in no order
                best = np.argpartition(near, -n_best, axis=1)[:, -n_best:]
            positions = np.hstack([positions, block[best]])
            cosines = np.hstack([cosines, np.take_along_axis(near, best, axis=1)])
        order = np.argsort(-cosines, axis=1, kind="stable")[:, :n_best]
        if signs is not None:
            return self.rank(queries, np.take_along_axis(positions, order, axis=1), n_wanted)
        return np.take_along_axis(positions, order, axis=1), np.take_along_axis(cosines, order, axis=1)

    def rank(self, queries: Vectors, positions: Positions, k: int) -> Nearest:
        """Return the k best of each query's candidates `positions`, (n_queries, c >= k), with cosines, best first."""
        cosines = np.zeros(positions.shape)
        for row, (query, candidates) in enumerate(zip(queries.astype(np.float64), positions, strict=True)):
            cosines[row] = self.vectors[candidates].astype(np.float64) @ query  # one query's vectors fit the cache
        cosines = np.where(positions < 0, -np.inf, cosines.round(_DIGITS))
        order = np.lexsort((positions, -cosines), axis=1)[:, :k]
        return np.take_along_axis(positions, order, axis=1), np.take_along_axis(cosines, order, axis=1)

    def expand(self, rows: Positions, cosines: Cosines, k: int) -> tuple[list[list[int]], list[list[float]]]:
        """Return the k best positions of each query, equal cosines by position, from its best rows (n_queries, c)."""
        if self._copies is None:
            return rows.tolist(), cosines.tolist()
        by_row, starts = self._copies
        found: tuple[list[list[int]], list[list[float]]] = ([], [])
        for best, its_cosines in zip(rows, cosines, strict=True):
            copies = [by_row[starts[row] : starts[row + 1]][:k] for row in best]
            positions = np.concatenate(copies)
            near = np.repeat(its_cosines, [len(each) for each in copies])
            order = np.lexsort((positions, -near))[:k]
            found[0].append(positions[order].tolist())
            found[1].append(near[order].tolist())
        return found


def batches(n: int, size: int) -> list[slice]:
    """Return slices of `size` that cover n items."""
    return [slice(start, start + size) for start in range(0, n, size)]


@dataclass(frozen=True)
class Server:
    """A collection on a server. Its name is the digest of what it holds, so that equal stores share it."""

    url: str
    collection: str

    @property
    def address(self) -> tuple[str, int, bool]:
        """The host, the port (that of the scheme where the URL names none), and whether the connection is encrypted."""
        parts = urlsplit(self.url)
        tls = parts.scheme == "https"
        return parts.hostname or "", parts.port or (443 if tls else 80), tls


@contextmanager
def failing(what: Server | str | None) -> Iterator[None]:
    """Turn whatever a server's client, or the code of others, raises inside into one sentence; nothing for None."""
    try:
        yield
    except RagLabError:
        raise
    except Exception as error:  # clients pass on what their transport raises: time-outs, refusals, protocol errors
        if what is None:
            raise
        if isinstance(what, Server):
            reason = one_line(str(error)) or type(error).__name__
            sentence = f"The vector store at {what.url} failed: {reason}; is it running, and is store.url right?"
        else:
            sentence = f"The {what} raised {type(error).__name__}: {' '.join(str(error).split())[:200]}."
        raise StoreError(sentence) from error


class SearchedRows(ABC):
    """Rows in a folder, and a search of which a subclass only writes `_nearest`."""

    exact: ClassVar[bool]  # whether the true neighbours are always found; their recall is measured where it is False

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = Rows(path)  # vectors, labels and ids
        server = path / _SERVER_FILE  # where the vectors are searched; none where the engine works in the folder
        self.server = Server(**json.loads(server.read_bytes())) if server.exists() else None

    def search(self, vectors: Vectors, k: int, allowed: frozenset[str] | None = None) -> Found:
        """Return the ids nearest to each row of `vectors`, (n_queries, dim), and their cosines.

        Best first; equal cosines in the order in which `build` had the ids. Only ids whose label is in `allowed` are
        searched (all where it is None), so a list has min(k, number of these) entries.
        """
        labels = enumerate(self.rows.labels)
        numbers = None if allowed is None else tuple(number for number, label in labels if label in allowed)
        if numbers is None or len(numbers) == len(self.rows.labels):  # all are allowed: no filter is needed
            numbers, n = None, len(self.rows)
        else:
            n = int(self.rows.mask(numbers).sum())
        if not n:
            return [[] for _ in vectors], [[] for _ in vectors]
        ids: list[list[str]] = []
        cosines: list[list[float]] = []
        for part in batches(len(vectors), _QUERIES_AT_ONCE):
            with failing(self.server):
                rows, near = self._search(vectors[part], min(k, n), n, numbers)
            positions, scores = self.rows.expand(rows, near, k)
            ids += [[self.rows.ids[position] for position in found] for found in positions]
            cosines += scores
        return ids, cosines

    def _search(self, queries: Vectors, k: int, n: int, numbers: Numbers | None) -> Nearest:
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
    def _nearest(self, queries: Vectors, n_wanted: int, numbers: Numbers | None) -> Nearest:
        """Return rows and cosines, (n_queries, n_wanted) each, best first, of those with one of the labels (None: all).

        Cosines are as the engine computes them; row -1 is where it found no more.
        """


class EngineStore(SearchedRows):
    """A vector store, built once in a folder, then only read; a subclass only writes `_fill` and `_nearest`."""

    @classmethod
    def build(
        cls, path: Path, ids: Sequence[str], vectors: OfIds, labels: Sequence[str], url: str = "",
        kind: VectorKind = "float32",
    ) -> None:  # fmt: skip
        """Write a new store of n >= 1 ids, (n, dim) unit vectors and n access labels into the new folder `path`.

        The vectors lie on the server at `url`, or as `kind` in the folder, which may be moved afterwards, where it is
        "".
        """
        rows = Rows.write(path, ids, vectors, labels, kind)
        if url:
            content = hashlib.sha256(json.dumps([rows.ids, rows.labels]).encode())
            content.update(rows.label_numbers.tobytes())
            content.update(np.ascontiguousarray(rows.vectors[:]).data.cast("B"))
            server = Server(url, f"rag_lab_{content.hexdigest()[:40]}")
            (path / _SERVER_FILE).write_text(json.dumps(asdict(server)), encoding="utf-8")
        store = cls(path)
        with failing(store.server):
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
            self._connect(self.server).delete_collection(self.server.collection)
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

    @staticmethod
    @abstractmethod
    def _connect(server: Server) -> Any:
        """Return a client of the server, which has the method `delete_collection(name)`."""


class ExactStore(EngineStore):
    """Compares every query with every allowed vector, in memory: the reference for the other stores."""

    exact: ClassVar[bool] = True

    def _fill(self) -> None:
        """Nothing: the rows are the store."""

    def _nearest(self, queries: Vectors, n_wanted: int, numbers: Numbers | None) -> Nearest:
        return self.rows.scan(queries, n_wanted, numbers)


QUANTIZED_VERSION = 1  # raised when a quantization gives other numbers
RESCORED = 8  # times as many rows as are wanted are compared as int8, of those that are nearest by their signs
INT8_FILE = "int8.npy"
_SAMPLE, _NEIGHBOURS = 50, 10  # of the children, for which it is counted what the quantization changes


class QuantizedVectors:
    """(n, dim) unit vectors in a folder, mapped into memory; what is taken of them is float32."""

    def __init__(self, path: Path) -> None:
        self._whole: npt.NDArray[np.int8] = np.load(path / INT8_FILE, mmap_mode="r", allow_pickle=False)
        self._lengths: npt.NDArray[np.float32] = np.load(path / "lengths.npy", allow_pickle=False)
        self.is_binary = (path / "signs.npy").exists()
        if self.is_binary:  # (n_words, n): the signs of 64 numbers a word
            self._signs: npt.NDArray[np.uint64] = np.load(path / "signs.npy", mmap_mode="r", allow_pickle=False)
        self.shape = self._whole.shape

    def __getitem__(self, rows: Any) -> Vectors:
        whole: Vectors = self._whole[rows].astype(np.float32)
        whole /= self._lengths[rows][..., None]
        return whole

    def alike(self, queries: Vectors, rows: Any) -> npt.NDArray[np.float32]:
        """Return (n_queries, n_rows): minus the number of bits in which the signs of query and row differ."""
        signs, asked = self._signs[:, rows], words_of_signs(queries)
        return np.stack([-np.bitwise_count(signs ^ one[:, None]).sum(axis=0, dtype=np.float32) for one in asked])


def words_of_signs(vectors: Vectors) -> npt.NDArray[np.uint64]:
    """Return the signs of each vector as words, (n, n_words)."""
    signs = np.packbits(vectors > 0, axis=1)
    padded = np.pad(signs, ((0, 0), (0, -signs.shape[1] % 8)))
    return padded.view(np.uint64)


def neighbours_kept(vectors: Vectors, search: Callable[[Vectors, int], npt.NDArray[np.int64]]) -> float:
    """Return the share of the ten nearest of some vectors, compared as float32, that `search` finds among its ten."""
    k = min(_NEIGHBOURS + 1, len(vectors))  # a vector finds itself, which counts nothing
    asked = vectors[np.unique(np.linspace(0, len(vectors) - 1, _SAMPLE).astype(int))]
    nearest = np.argpartition(asked @ vectors.T, -k, axis=1)[:, -k:]
    found = sum(len({*a} & {*b}) - 1 for a, b in zip(nearest.tolist(), search(asked, k).tolist(), strict=True))
    return round(found / max(1, len(asked) * (k - 1)), 4)
