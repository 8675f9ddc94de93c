"""Exact search in memory: the reference that other stores are checked against."""

from __future__ import annotations

from typing import ClassVar

from rag_lab.models.protocols import Vectors
from rag_lab.stores.vector.engine import EngineStore
from rag_lab.stores.vector.entries import Numbers
from rag_lab.stores.vector.vector_store import Cosines, Positions


class ExactStore(EngineStore):
    """Compares every query with every allowed vector."""

    exact: ClassVar[bool] = True

    def _fill(self) -> None:
        """Nothing: the rows are the store."""

    def _nearest(self, queries: Vectors, n_wanted: int, numbers: Numbers | None) -> tuple[Positions, Cosines]:
        return self.rows.scan(queries, n_wanted, numbers)
