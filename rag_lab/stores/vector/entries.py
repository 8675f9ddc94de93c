"""What every index keeps beside its engine: the ids and access labels of what it holds, by position, in its folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

Numbers = tuple[int, ...]  # labels by their place in `Entries.labels`


def write_entries(path: Path, ids: Sequence[str], labels: Sequence[str]) -> None:
    """Write ids and labels, which are in the same order, into the folder `path`."""
    distinct = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    np.save(path / "labels.npy", np.array([distinct[label] for label in labels], np.int32), allow_pickle=False)
    (path / "labels.json").write_text(json.dumps(list(distinct)), encoding="utf-8")
    (path / "ids.json").write_text(json.dumps(list(ids)), encoding="utf-8")


class Entries:
    """Reads what `write_entries` wrote."""

    def __init__(self, path: Path) -> None:
        self.path = path

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
