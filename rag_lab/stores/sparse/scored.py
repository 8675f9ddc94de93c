"""What the sparse indexes share: a folder with ids, and how the best of all scores are chosen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

_IDS = "ids.json"

Positions = npt.NDArray[np.intp]


def write_ids(path: Path, ids: Sequence[str]) -> None:
    """Write the ids of the texts, in order, into the folder `path`."""
    (path / _IDS).write_text(json.dumps(list(ids)), encoding="utf-8")


class ScoredTexts:
    """Texts in a folder, of which every one gets a score; see `SparseIndex`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def open(cls, path: Path) -> Self:
        """Return the index that `build` wrote, for reading."""
        return cls(path)

    @cached_property
    def _ids(self) -> list[str]:
        ids: list[str] = json.loads((self.path / _IDS).read_text(encoding="utf-8"))
        return ids

    def _best(self, scores: npt.NDArray[np.floating], k: int) -> tuple[list[str], list[float]]:
        """Return ids and scores of the k best of (n,) scores."""
        positions = best(scores, k)
        return [self._ids[position] for position in positions.tolist()], scores[positions].tolist()


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
