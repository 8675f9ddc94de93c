"""Exact search in memory: the reference that other stores are checked against."""

from __future__ import annotations

from typing import ClassVar

from rag_lab.models.base import Vectors
from rag_lab.stores.base import Cosines, Positions
from rag_lab.stores.engine import EngineStore
from rag_lab.stores.entries import Numbers


class ExactStore(EngineStore):
    """Compares every query with every allowed vector."""

    exact: ClassVar[bool] = True

    def _fill(self) -> None:
        """Nothing: the rows are the store."""

    def _nearest(self, queries: Vectors, n_wanted: int, numbers: Numbers | None) -> tuple[Positions, Cosines]:
        return self.rows.scan(queries, n_wanted, numbers)
