"""What every vector store keeps in its folder: vectors with their labels, by row; and the one scoring of all.

A row is a distinct vector with its access label; the ids that have it are its copies. The engine gets each row once: a
graph of near neighbours (HNSW) loses its way among copies, which fill each other's lists of neighbours.

Engines add up in different orders, so the cosines of equal vectors differ in the seventh digit from engine to engine.
What an engine found is therefore scored once more here, in double precision, and rounded to what single precision can
tell. So every exact store returns the same list, ties included.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_lab.models.protocols import Vectors

Positions = npt.NDArray[np.int64]  # rows of a store; -1 is no row
Cosines = npt.NDArray[np.float64]
Found = tuple[list[list[str]], list[list[float]]]  # ids and their scores, a list for each query, best first
Numbers = tuple[int, ...]  # labels by their position in `Rows.labels`

_COPIES = "rows.npy"
_DIGITS = 7
_ROWS_AT_ONCE = 65_536


class Rows:
    """Vectors and labels by row, and ids by position, in a folder; vectors stay on disk and are mapped into memory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def write(cls, path: Path, ids: Sequence[str], vectors: Vectors, labels: Sequence[str]) -> Rows:
        """Write the rows of these ids, which each have a vector and a label, into the folder `path`, which is made."""
        if not len(ids) == len(vectors) == len(labels) > 0:
            raise ValueError(f"one vector and one label an id: {len(ids)}, {len(vectors)}, {len(labels)}")
        path.mkdir(parents=True)
        numbers: dict[bytes, int] = {}
        pairs = zip(np.ascontiguousarray(vectors, np.float32), labels, strict=True)
        keys = (blake2b(vector.tobytes() + label.encode(), digest_size=16).digest() for vector, label in pairs)
        rows = np.array([numbers.setdefault(key, len(numbers)) for key in keys])
        firsts = np.unique(rows, return_index=True)[1]
        kept = vectors if len(firsts) == len(vectors) else vectors[firsts]
        np.save(path / "vectors.npy", np.ascontiguousarray(kept, np.float32), allow_pickle=False)
        np.save(path / _COPIES, rows, allow_pickle=False)
        distinct = {label: number for number, label in enumerate(dict.fromkeys(labels[first] for first in firsts))}
        label_numbers = np.array([distinct[labels[first]] for first in firsts], np.int32)
        np.save(path / "labels.npy", label_numbers, allow_pickle=False)
        (path / "labels.json").write_text(json.dumps(list(distinct)), encoding="utf-8")
        (path / "ids.json").write_text(json.dumps(list(ids)), encoding="utf-8")
        return cls(path)

    def __len__(self) -> int:
        return len(self.vectors)

    @cached_property
    def vectors(self) -> Vectors:
        """(n, dim), in the order in which the ids first have them."""
        vectors: Vectors = np.load(self.path / "vectors.npy", mmap_mode="r", allow_pickle=False)
        return vectors

    @cached_property
    def ids(self) -> list[str]:
        """The id at each position."""
        ids: list[str] = json.loads((self.path / "ids.json").read_text(encoding="utf-8"))
        return ids

    @cached_property
    def labels(self) -> list[str]:
        """The distinct labels."""
        labels: list[str] = json.loads((self.path / "labels.json").read_text(encoding="utf-8"))
        return labels

    @cached_property
    def label_numbers(self) -> npt.NDArray[np.int32]:
        """(n,): which of `labels` each position has."""
        numbers: npt.NDArray[np.int32] = np.load(self.path / "labels.npy", allow_pickle=False)
        return numbers

    def numbers_of(self, allowed: frozenset[str] | None) -> Numbers | None:
        """Return the labels here that are allowed, or None where all are: no filter is needed then."""
        if allowed is None:
            return None
        numbers = tuple(number for number, label in enumerate(self.labels) if label in allowed)
        return None if len(numbers) == len(self.labels) else numbers

    def mask(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Return (n,): whether each position has one of these labels."""
        wanted = np.zeros(len(self.labels), np.bool_)
        wanted[list(numbers)] = True
        return wanted[self.label_numbers]

    def count(self, numbers: Numbers | None) -> int:
        """Return how many rows have one of these labels."""
        return len(self) if numbers is None else int(self.mask(numbers).sum())

    def scan(self, queries: Vectors, n_wanted: int, numbers: Numbers | None) -> tuple[Positions, Cosines]:
        """Return the nearest rows with these labels, and cosines in single precision: (n_queries, n_wanted) each."""
        positions = np.full((len(queries), 0), -1, np.int64)
        cosines = np.zeros((len(queries), 0))
        allowed = np.arange(len(self)) if numbers is None else np.flatnonzero(self.mask(numbers))
        for part in batches(len(allowed), _ROWS_AT_ONCE):  # so that a scan needs little memory
            block = allowed[part]
            vectors = self.vectors[part] if numbers is None else self.vectors[block]
            near = queries @ vectors.T
            if near.shape[1] <= n_wanted:
                best = np.broadcast_to(np.arange(near.shape[1]), near.shape)
            else:  # the columns of the largest, in no order
                best = np.argpartition(near, -n_wanted, axis=1)[:, -n_wanted:]
            positions = np.hstack([positions, block[best]])
            cosines = np.hstack([cosines, np.take_along_axis(near, best, axis=1)])
        order = np.argsort(-cosines, axis=1, kind="stable")[:, :n_wanted]
        return np.take_along_axis(positions, order, axis=1), np.take_along_axis(cosines, order, axis=1)

    def rank(self, queries: Vectors, positions: Positions, k: int) -> tuple[Positions, Cosines]:
        """Return the k best of each query's candidates `positions`, (n_queries, c >= k), with cosines, best first."""
        cosines = np.zeros(positions.shape)
        for row, (query, candidates) in enumerate(zip(queries.astype(np.float64), positions, strict=True)):
            cosines[row] = self.vectors[candidates].astype(np.float64) @ query  # one query's vectors fit the cache
        cosines = np.where(positions < 0, -np.inf, cosines.round(_DIGITS))
        order = np.lexsort((positions, -cosines), axis=1)[:, :k]
        return np.take_along_axis(positions, order, axis=1), np.take_along_axis(cosines, order, axis=1)

    def expand(self, rows: Positions, cosines: Cosines, k: int) -> tuple[list[list[int]], list[list[float]]]:
        """Return the k best positions of each query, best first, equal cosines by position.

        `rows` and `cosines`, (n_queries, c), are its c best rows: c is k, or all that there are.
        """
        if len(self) == len(self._row_of):
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

    @cached_property
    def _row_of(self) -> Positions:
        row_of: Positions = np.load(self.path / _COPIES, allow_pickle=False)
        return row_of

    @cached_property
    def _copies(self) -> tuple[Positions, Positions]:
        """The positions, those of row 0 first, in order within a row; and where those of each row begin."""
        by_row = np.argsort(self._row_of, kind="stable")
        return by_row, np.searchsorted(self._row_of[by_row], np.arange(len(self) + 1))


def batches(n: int, size: int) -> list[slice]:
    """Return slices of `size` that cover n items."""
    return [slice(start, start + size) for start in range(0, n, size)]


def padded(
    rows: Sequence[Sequence[int]], cosines: Sequence[Iterable[float]], n_wanted: int
) -> tuple[Positions, Cosines]:
    """Return an engine's lists as arrays, (n_queries, n_wanted): shorter ones end with row -1, cosine -inf."""
    positions = np.full((len(rows), n_wanted), -1, np.int64)
    values = np.full((len(rows), n_wanted), -np.inf)
    for number, (row, near) in enumerate(zip(rows, cosines, strict=True)):
        positions[number, : len(row)] = row
        values[number, : len(row)] = list(near)
    return positions, values
