"""Exact search in memory: the reference that other stores are checked against."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from rag_lab.models.base import Vectors
from rag_lab.stores.base import Found


class ExactStore:
    """Compares every query with every vector."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def build(cls, path: Path, ids: Sequence[str], vectors: Vectors) -> None:
        """Write a new store into the folder `path`."""
        path.mkdir(parents=True)
        np.save(path / "vectors.npy", vectors, allow_pickle=False)
        (path / "ids.json").write_text(json.dumps(list(ids)), encoding="utf-8")

    @classmethod
    def open(cls, path: Path) -> Self:
        """Return the store that `build` wrote, for reading."""
        return cls(path)

    def search(self, vectors: Vectors, k: int) -> Found:
        """Return the min(k, n) nearest ids to each row and their cosines, best first, ties by order of insertion."""
        if not len(vectors):
            return [], []
        cosines = vectors @ self._vectors.T
        ranking = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
        ids = [[self._ids[position] for position in row] for row in ranking]
        return ids, np.take_along_axis(cosines, ranking, axis=1).tolist()

    @cached_property
    def _vectors(self) -> Vectors:
        vectors: Vectors = np.load(self.path / "vectors.npy", allow_pickle=False)
        return vectors

    @cached_property
    def _ids(self) -> list[str]:
        ids: list[str] = json.loads((self.path / "ids.json").read_text(encoding="utf-8"))
        return ids
