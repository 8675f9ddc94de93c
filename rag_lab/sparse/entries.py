"""What every sparse index keeps beside its own: ids and labels of its texts, and how the best of them are chosen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]


class Entries:
    """Ids and labels by position, in a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @staticmethod
    def write(path: Path, ids: Sequence[str], labels: Sequence[str]) -> None:
        """Write ids and labels, which are in the same order, into the folder `path`."""
        names = sorted(set(labels))
        codes = {name: code for code, name in enumerate(names)}
        np.save(path / "labels.npy", np.array([codes[label] for label in labels], np.int32), allow_pickle=False)
        (path / "labels.json").write_text(json.dumps(names, ensure_ascii=False), encoding="utf-8")
        (path / "ids.json").write_text(json.dumps(list(ids), ensure_ascii=False), encoding="utf-8")

    @cached_property
    def ids(self) -> list[str]:
        """The ids, by position."""
        ids: list[str] = json.loads((self.path / "ids.json").read_text(encoding="utf-8"))
        return ids

    def mask(self, allowed: frozenset[str]) -> Mask:
        """Return which positions have one of the `allowed` labels, (n,)."""
        names, codes = self._labels
        is_allowed = np.array([name in allowed for name in names], bool)
        mask: Mask = is_allowed[codes]
        return mask

    @cached_property
    def _labels(self) -> tuple[list[str], npt.NDArray[np.int32]]:
        names = json.loads((self.path / "labels.json").read_text(encoding="utf-8"))
        return names, np.load(self.path / "labels.npy", allow_pickle=False)


def best(scores: npt.NDArray[np.floating], k: int) -> Positions:
    """Return the positions of the k highest of the scores above 0, (n,), best first, ties by position."""
    found = np.flatnonzero(scores > 0)
    if len(found) > k:
        values = scores[found]
        found = found[values >= np.partition(values, len(values) - k)[len(values) - k]]
    return found[np.argsort(-scores[found], kind="stable")[:k]]
