"""What every store keeps beside its engine: vectors with their labels, row by row; and the one scoring of all stores.

A row is a distinct vector with its access label; the ids that have it are its copies.

Engines add up in different orders, so the cosines of equal vectors differ in the seventh digit from engine to engine.
What an engine found is therefore scored once more here, in double precision, and rounded to what single precision can
tell. So every exact store returns the same list, ties included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_lab.models.protocols import Vectors
from rag_lab.stores.vector.copies import Copies, distinct
from rag_lab.stores.vector.entries import Entries, Numbers, write_entries
from rag_lab.stores.vector.vector_store import Cosines, Positions

_DIGITS = 7
_ROWS_AT_ONCE = 65_536


class Rows(Entries):
    """Vectors and labels by row, and ids, in a folder; vectors stay on disk and are mapped into memory."""

    @classmethod
    def write(cls, path: Path, ids: Sequence[str], vectors: Vectors, labels: Sequence[str]) -> Rows:
        """Write the rows of these ids, which each have a vector and a label, into the folder `path`, which is made.

        Raises:
            ValueError: if the three do not have the same length, or it is 0.
        """
        if not len(ids) == len(vectors) == len(labels) > 0:
            raise ValueError(f"one vector and one label an id: {len(ids)}, {len(vectors)}, {len(labels)}")
        path.mkdir(parents=True)
        firsts, rows = distinct(np.ascontiguousarray(vectors, np.float32), labels)
        kept = vectors if len(firsts) == len(vectors) else vectors[firsts]
        np.save(path / "vectors.npy", np.ascontiguousarray(kept, np.float32), allow_pickle=False)
        write_entries(path, ids, [labels[first] for first in firsts])
        Copies.write(path, rows)
        return cls(path)

    def __len__(self) -> int:
        return len(self.vectors)

    @cached_property
    def vectors(self) -> Vectors:
        """(n, dim), in the order in which the ids first have them."""
        vectors: Vectors = np.load(self.path / "vectors.npy", mmap_mode="r", allow_pickle=False)
        return vectors

    @cached_property
    def copies(self) -> Copies:
        """Which ids share a row."""
        return Copies(self.path)

    def count(self, numbers: Numbers | None) -> int:
        """Return how many rows have one of these labels."""
        return len(self) if numbers is None else int(self._counts[list(numbers)].sum())

    def have(self, positions: Positions, numbers: Numbers | None) -> bool:
        """Tell whether all of these rows have one of these labels (any, where None)."""
        return numbers is None or bool(np.isin(self.label_numbers[positions], numbers).all())

    def scan(self, queries: Vectors, n_wanted: int, numbers: Numbers | None) -> tuple[Positions, Cosines]:
        """Compare each query with every row that has one of these labels, and return the nearest, best first.

        Returns:
            Rows and their cosines, added up in single precision, (n_queries, n_wanted) each.
        """
        positions = np.full((len(queries), 0), -1, np.int64)
        cosines = np.zeros((len(queries), 0))
        for block, vectors in self._blocks(numbers):
            near = queries @ vectors.T
            best = _top(near, n_wanted)
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

    def _blocks(self, numbers: Numbers | None) -> Iterator[tuple[Positions, Vectors]]:
        """Give positions and vectors some ten thousand at a time, so that a scan needs little memory."""
        if numbers is None:
            for part in batches(len(self), _ROWS_AT_ONCE):
                yield np.arange(part.start, min(part.stop, len(self))), self.vectors[part]
            return
        wanted = np.flatnonzero(self.mask(numbers))
        for part in batches(len(wanted), _ROWS_AT_ONCE):
            yield wanted[part], self.vectors[wanted[part]]

    @cached_property
    def _counts(self) -> npt.NDArray[np.int64]:
        return np.bincount(self.label_numbers, minlength=len(self.labels))


def _top(near: npt.NDArray[np.floating[Any]], n_wanted: int) -> Positions:
    """Return the columns of the n_wanted largest values of each row, in no order."""
    if near.shape[1] <= n_wanted:
        return np.broadcast_to(np.arange(near.shape[1]), near.shape)
    return np.argpartition(near, -n_wanted, axis=1)[:, -n_wanted:]


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
