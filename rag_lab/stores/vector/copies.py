"""Children with the same text have the same vector: the engine gets each vector once, and the copies come back after.

A graph of near neighbours (HNSW) loses its way among copies: they fill each other's lists of neighbours, and what lies
beyond them is not found.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_lab.models.protocols import Vectors
from rag_lab.stores.vector.vector_store import Cosines, Positions

_FILE = "rows.npy"


def distinct(vectors: Vectors, labels: Sequence[str]) -> tuple[Positions, Positions]:
    """Find what has the same vector and the same label.

    Returns:
        The position at which each distinct pair stands first, (m,), ascending; and which of them each of the n
        positions has, (n,).
    """
    numbers: dict[bytes, int] = {}
    rows = np.array([numbers.setdefault(_key(*pair), len(numbers)) for pair in zip(vectors, labels, strict=True)])
    return np.unique(rows, return_index=True)[1], rows


def _key(vector: npt.NDArray[np.float32], label: str) -> bytes:
    return blake2b(vector.tobytes() + label.encode(), digest_size=16).digest()


class Copies:
    """Which of n positions share a row, kept in a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def write(cls, path: Path, rows: Positions) -> None:
        """Keep the row of each position, (n,), in the folder `path`."""
        np.save(path / _FILE, rows, allow_pickle=False)

    def expand(self, rows: Positions, cosines: Cosines, k: int) -> tuple[list[list[int]], list[list[float]]]:
        """Return the k best positions of each query, best first, equal cosines by position.

        Args:
            rows: (n_queries, c), the c best rows of each query; c is k, or all that there are.
            cosines: of these, (n_queries, c).
            k: positions wanted; fewer come where the rows have no more.
        """
        if self._n_rows == len(self._rows):
            return rows.tolist(), cosines.tolist()
        found = [self._expand(*one, k) for one in zip(rows, cosines, strict=True)]
        return [positions for positions, _ in found], [near for _, near in found]

    def _expand(self, rows: Positions, cosines: Cosines, k: int) -> tuple[list[int], list[float]]:
        copies = [self._by_row[self._starts[row] : self._starts[row + 1]][:k] for row in rows]
        positions = np.concatenate(copies)
        near = np.repeat(cosines, [len(each) for each in copies])
        order = np.lexsort((positions, -near))[:k]
        return positions[order].tolist(), near[order].tolist()

    @cached_property
    def _rows(self) -> Positions:
        rows: Positions = np.load(self.path / _FILE, allow_pickle=False)
        return rows

    @cached_property
    def _n_rows(self) -> int:
        return int(self._rows.max()) + 1

    @cached_property
    def _by_row(self) -> Positions:
        """The positions, those of row 0 first, in order within a row."""
        return np.argsort(self._rows, kind="stable")

    @cached_property
    def _starts(self) -> Positions:
        return np.searchsorted(self._rows[self._by_row], np.arange(self._n_rows + 1))
