"""FAISS: an HNSW graph by inner product (Malkov and Yashunin 2018), which of unit vectors is the cosine.

A graph that may only return few of its nodes must be searched ever wider to find them. So a filter that leaves few
rows is answered by comparing these rows one by one, which is exact and quick, and one that leaves many widens the
search by the share that it leaves.
"""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from rag_lab.models.protocols import Vectors
from rag_lab.stores.engine import EngineStore
from rag_lab.stores.rows import Cosines, Numbers, Positions

_GRAPH = "hnsw.faiss"
_NEIGHBOURS = 32
_EF_CONSTRUCTION = 200
_EF_SEARCH = 800
_FEW_ROWS = 10_000


class FaissStore(EngineStore):
    """One graph in one file."""

    exact: ClassVar[bool] = False

    def _fill(self) -> None:
        faiss = _library()
        graph = faiss.IndexHNSWFlat(self.rows.vectors.shape[1], _NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = _EF_CONSTRUCTION
        n_threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)  # parallel insertion makes another graph each time
        try:
            graph.add(np.ascontiguousarray(self.rows.vectors))
        finally:
            faiss.omp_set_num_threads(n_threads)
        faiss.write_index(graph, str(self.path / _GRAPH))

    def _nearest(self, queries: Vectors, n_wanted: int, numbers: Numbers | None) -> tuple[Positions, Cosines]:
        n_allowed = self.rows.count(numbers)
        if numbers is not None and n_allowed <= _FEW_ROWS:
            return self.rows.scan(queries, n_wanted, numbers)
        width = max(_EF_SEARCH, n_wanted) * len(self.rows) // n_allowed
        faiss = _library()
        bits = None if numbers is None else np.packbits(self.rows.mask(numbers), bitorder="little")
        selector = None if bits is None else faiss.IDSelectorBitmap(bits)
        settings = faiss.SearchParametersHNSW(efSearch=width, sel=selector)
        cosines, rows = self._graph.search(np.ascontiguousarray(queries), n_wanted, params=settings)
        return rows, cosines.astype(np.float64)

    @cached_property
    def _graph(self) -> Any:
        return _library().read_index(str(self.path / _GRAPH))


def _library() -> Any:
    """Return the module, untyped: its stubs lack what its compiled part adds."""
    import faiss

    return faiss
