"""Sparse indexes by name, and where they are kept: in the index of their corpus, built when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from rag_lab._kit.digest import digest
from rag_lab._kit.whole_folder import whole_folder
from rag_lab.access import Labels, access_label
from rag_lab.records import Chunk
from rag_lab.stores.sparse import analyzer as analyzers
from rag_lab.stores.sparse.analyzer import Analyzer
from rag_lab.stores.sparse.bm25 import BM25Index
from rag_lab.stores.sparse.sparse_index import SparseIndex
from rag_lab.stores.sparse.tfidf import TfidfIndex
from rag_lab.stores.sparse.units import Unit

SparseName = Literal["bm25", "tfidf"]
SPARSE: dict[SparseName, type[BM25Index] | type[TfidfIndex]] = {"bm25": BM25Index, "tfidf": TfidfIndex}

_FORMAT = 3  # raised when the files of an index, or what is indexed, change


def identity(name: SparseName, analyzer: Analyzer, units: Unit = "child") -> Mapping[str, Any]:
    """Return what can change the results on the same corpus, as JSON values."""
    index = SPARSE[name]
    found = {
        "name": name,
        "format": _FORMAT,
        "analyzer": [analyzer, analyzers.VERSION],
        "libraries": {library: _version(library) for library in (index.library, "regex", "PyStemmer")},
    }
    return found if units == "child" else {**found, "units": units}


@cache
def _version(library: str) -> str:
    return version(library)  # looked up on disk


def open_sparse(
    folder: Path,
    name: SparseName,
    analyzer: Analyzer,
    texts: Callable[[], Iterable[Chunk]],
    units: Unit = "child",
    visible: Labels | None = None,
) -> SparseIndex:
    """Open a sparse index in `folder`; where it is missing or damaged, build it from `texts`, which are its units.

    It holds the texts whose label is `visible` alone (all where None): weights of words and lengths of texts are
    statistics of whatever is indexed, so those of closed texts would show in the scores of open ones. Processes that
    want it at the same time build it once.
    """
    index = SPARSE[name]
    whole = identity(name, analyzer, units)
    made_of = digest(whole if visible is None else [whole, sorted(visible)])
    target = folder / f"{name}-{analyzer}-{made_of[:12]}"
    with whole_folder(target) as partial:
        if partial:
            found = [c for c in texts() if visible is None or access_label(c.namespace, c.permissions) in visible]
            index.build(partial, [c.chunk_id for c in found], [c.text for c in found], analyzer)
    return index.open(target)
