"""What the sparse indexes share: a folder with ids and labels, and how the best of all scores are chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from rag_lab.stores.vector.entries import Entries

Positions = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]


class ScoredTexts:
    """Texts in a folder, of which every one gets a score; see `SparseIndex`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._entries = Entries(path)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Return the index that `build` wrote, for reading."""
        return cls(path)

    def _mask(self, allowed: frozenset[str] | None) -> Mask | None:
        """Return which texts have an allowed label, (n,), or None where all have."""
        numbers = self._entries.numbers_of(allowed)
        return None if numbers is None else self._entries.mask(numbers)

    def _best(self, scores: npt.NDArray[np.floating], k: int) -> tuple[list[str], list[float]]:
        """Return ids and scores of the k best of (n,) scores."""
        positions, ids = best(scores, k), self._entries.ids
        return [ids[position] for position in positions.tolist()], scores[positions].tolist()


def best(scores: npt.NDArray[np.floating], k: int) -> Positions:
    """Return the positions of the k highest of the scores above 0, (n,), best first, ties by position."""
    above = scores > 0
    n = np.count_nonzero(above)
    if n > k:
        # Choosing among all is quicker than gathering most of them, and slow where many are equal, as zeros are.
        values = scores if 2 * n > len(scores) else scores[np.flatnonzero(above)]
        above = scores >= np.partition(values, len(values) - k)[len(values) - k]
    found = np.flatnonzero(above)
    return found[np.argsort(-scores[found], kind="stable")[:k]]
