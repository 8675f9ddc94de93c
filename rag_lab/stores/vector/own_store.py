"""Vector stores of one's own: the workbench keeps the rows, scores and orders what they find, and checks it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Protocol

from rag_lab.errors import RagLabError, StoreError
from rag_lab.models.protocols import Vectors
from rag_lab.stores.vector.engine import SearchedRows
from rag_lab.stores.vector.entries import Numbers
from rag_lab.stores.vector.exact import ExactStore
from rag_lab.stores.vector.rows import Rows, padded
from rag_lab.stores.vector.vector_store import Cosines, Positions

_FOLDER = "own"


class Stores(Protocol):
    """What builds stores and opens them; see `VectorStore`."""

    def build(self, path: Path, ids: Sequence[str], vectors: Vectors, labels: Sequence[str], url: str = "") -> None:
        """Write a new store into the folder `path`."""

    def open(self, path: Path) -> SearchedRows:
        """Return the store that `build` wrote."""


class OwnStores:
    """Stores of a class with `build` and `open`, as `VectorStore` has them. Its ids are the numbers of rows.

    Args:
        theirs: the class, or an instance that has these methods.
        what: how sentences call it.
    """

    def __init__(self, theirs: Any, what: str) -> None:
        self._theirs, self._what = theirs, what

    def build(self, path: Path, ids: Sequence[str], vectors: Vectors, labels: Sequence[str], url: str = "") -> None:
        """Write the rows, and have theirs written beside them."""
        rows = Rows.write(path, ids, vectors, labels)
        names = [str(row) for row in range(len(rows))]
        of_rows = [rows.labels[number] for number in rows.label_numbers.tolist()]
        with _asking(self._what):
            self._theirs.build(path / _FOLDER, names, rows.vectors, of_rows, url)

    def open(self, path: Path) -> SearchedRows:
        """Return theirs, checked."""
        with _asking(self._what):
            return OwnStore(path, self._theirs.open(path / _FOLDER), self._what)


class LangChainStores:
    """Stores of LangChain's, made by `factory(embeddings)`; opening one adds the rows that it does not hold yet.

    Args:
        factory: returns a LangChain vector store that embeds with what it is given, or a pair of it and a label filter;
            see `LangChainStore`.
        parameters: keyword arguments of the factory.
        what: how sentences call it.
    """

    def __init__(self, factory: Any, parameters: Mapping[str, Any], what: str) -> None:
        self._factory, self._parameters, self._what = factory, parameters, what

    def build(self, path: Path, ids: Sequence[str], vectors: Vectors, labels: Sequence[str], url: str = "") -> None:
        """Write the rows."""
        Rows.write(path, ids, vectors, labels)

    def open(self, path: Path) -> SearchedRows:
        """Return a store that holds the rows."""
        from rag_lab.stores.vector.langchain import GivenVectors, LangChainStore

        rows = ExactStore(path)
        with _asking(self._what):
            made = self._factory(GivenVectors(rows), **self._parameters)
            store, label_filter = made if isinstance(made, tuple) else (made, None)
            return LangChainStore.fill(rows, store, label_filter)


class OwnStore(SearchedRows):
    """Rows in a folder, searched by somebody's store."""

    exact: ClassVar[bool] = False  # for all that is known of it

    def __init__(self, path: Path, theirs: Any, what: str) -> None:
        super().__init__(path)
        self._theirs, self._what = theirs, what

    def _nearest(self, queries: Vectors, n_wanted: int, numbers: Numbers | None) -> tuple[Positions, Cosines]:
        allowed = None if numbers is None else frozenset(self.rows.labels[number] for number in numbers)
        with _asking(self._what):
            ids, cosines = self._theirs.search(queries, n_wanted, allowed)
            found = [[int(name) for name in some] for some in ids]
            near = [[float(cosine) for cosine in some] for some in cosines]
        if len(found) != len(queries) or any(len(a) != len(b) for a, b in zip(found, near, strict=False)):
            raise StoreError(f"The {self._what} returned {len(found)} lists of ids for {len(queries)} queries.")
        if any(len(set(rows)) < len(rows) or min(rows, default=0) < 0 or len(rows) > n_wanted for rows in found):
            raise StoreError(f"The {self._what} returned an id twice, none of its ids, or more than {n_wanted}.")
        return padded(found, near, n_wanted)


@contextmanager
def _asking(what: str) -> Iterator[None]:
    """Turn whatever the code of others raises into a sentence."""
    try:
        yield
    except RagLabError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise StoreError(f"The {what} raised {type(error).__name__}: {reason}.") from error
