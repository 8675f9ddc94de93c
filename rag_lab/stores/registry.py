"""The store that a configuration names, built in or custom.

Of a custom store the workbench keeps the rows, checks what it finds, and scores and orders it.
"""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast

from rag_lab._kit.digest import source_digest
from rag_lab._kit.registry import FACTORY, parse_parameters
from rag_lab.errors import ConfigError, RagLabError, StoreError
from rag_lab.models.protocols import Vectors
from rag_lab.models.requirements import missing_package
from rag_lab.stores.config import STORES, VECTOR_STORES, StoreConfig
from rag_lab.stores.engine import EngineStore, ExactStore, SearchedRows
from rag_lab.stores.rows import Cosines, Numbers, Positions, Rows, padded

_FOLDER = "own"


class Stores(Protocol):
    """What builds stores and opens them; see `EngineStore`."""

    def build(self, path: Path, ids: Sequence[str], vectors: Vectors, labels: Sequence[str], url: str = "") -> None:
        """Write a new store into the folder `path`."""

    def open(self, path: Path) -> SearchedRows:
        """Return the store that `build` wrote."""


class CustomStores:
    """Stores of a class, or an instance, with `build` and `open` as `EngineStore` has them. Its ids are row numbers."""

    def __init__(self, custom: Any, what: str) -> None:
        self._custom, self._what = custom, what

    def build(self, path: Path, ids: Sequence[str], vectors: Vectors, labels: Sequence[str], url: str = "") -> None:
        """Write the rows, and let the custom store write its files into a folder of them."""
        rows = Rows.write(path, ids, vectors, labels)
        names = [str(row) for row in range(len(rows))]
        of_rows = [rows.labels[number] for number in rows.label_numbers.tolist()]
        with _asking(self._what):
            self._custom.build(path / _FOLDER, names, rows.vectors, of_rows, url)

    def open(self, path: Path) -> SearchedRows:
        """Return the custom store, checked."""
        with _asking(self._what):
            return CustomStore(path, self._custom.open(path / _FOLDER), self._what)


class LangChainStores:
    """Stores of LangChain's, built by `factory(embeddings)`; opening one adds the rows that it does not hold yet.

    The factory returns a LangChain vector store with these embeddings, or a pair of it and a label filter.
    """

    def __init__(self, factory: Any, parameters: Mapping[str, Any], what: str) -> None:
        self._factory, self._parameters, self._what = factory, parameters, what

    def build(self, path: Path, ids: Sequence[str], vectors: Vectors, labels: Sequence[str], url: str = "") -> None:
        """Write the rows."""
        Rows.write(path, ids, vectors, labels)

    def open(self, path: Path) -> SearchedRows:
        """Return a store that holds the rows."""
        from rag_lab.stores.langchain import LangChainStore, PrecomputedEmbeddings

        rows = ExactStore(path)
        with _asking(self._what):
            built = self._factory(PrecomputedEmbeddings(rows), **self._parameters)
            store, label_filter = built if isinstance(built, tuple) else (built, None)
            return LangChainStore.fill(rows, store, label_filter)


class CustomStore(SearchedRows):
    """Rows in a folder, searched by a custom store."""

    exact: ClassVar[bool] = False  # for all that is known of it

    def __init__(self, path: Path, custom: Any, what: str) -> None:
        super().__init__(path)
        self._custom, self._what = custom, what

    def _nearest(self, queries: Vectors, n_wanted: int, numbers: Numbers | None) -> tuple[Positions, Cosines]:
        allowed = None if numbers is None else frozenset(self.rows.labels[number] for number in numbers)
        with _asking(self._what):
            ids, cosines = self._custom.search(queries, n_wanted, allowed)
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


def store_problem(name: str) -> str:
    """Return why a store cannot be used here, in one sentence, or ''."""
    if name in STORES:
        problem = missing_package(STORES[name].module, "rag_lab[stores]")
        return f"store.name ({name}): {problem}" if problem else ""
    try:
        _load(name)
    except RagLabError as error:
        return f"store.name: {error}"
    return ""


def store_class(name: str) -> type[EngineStore]:
    """Return the class of a built-in store; `StoreError` if its package is not installed."""
    if problem := store_problem(name):
        raise StoreError(problem)
    module, _, attribute = STORES[name].target.partition(":")
    return cast("type[EngineStore]", getattr(importlib.import_module(module), attribute))


def stores_of(store: StoreConfig, override: Any = None) -> Stores:
    """Return what builds and opens the store that `store` names, or `override`: an object in its place."""
    if override is None and store.name in STORES:
        return store_class(store.name)
    built, parameters, name = _load(store.name, override)
    what = f"vector store {name!r}"
    if isinstance(built, type) and issubclass(built, EngineStore):
        return built
    if callable(getattr(built, "build", None)) and callable(getattr(built, "open", None)):
        return CustomStores(built, what)
    if not callable(built):
        raise ConfigError(f"The {what} needs the methods build and open, or to make a store of LangChain's.")
    return LangChainStores(built, parameters, what)


def identity(store: StoreConfig, override: Any = None) -> dict[str, Any]:
    """Return what can change the store's results: its name, its server, its packages' versions, its source."""
    if override is None and store.name in STORES:
        store_class(store.name)
        versions = {name: version(name) for name in STORES[store.name].distributions}
        return {"name": store.name, "url": store.url, "libraries": versions}
    built, _, name = _load(store.name, override)
    source = source_digest(built if hasattr(built, "__qualname__") else type(built))
    return {"name": name, "url": store.url, "source": source, "version": getattr(built, "version", 0)}


def _load(name: str, override: Any = None) -> tuple[Any, Mapping[str, Any], str]:
    """Return what a name stands for, its parameters, and the name; for `override` what tells it from others."""
    if override is not None:  # an instance with its parameters, else its name
        title = repr(override) if is_dataclass(override) else getattr(override, "__qualname__", None)
        return override, {}, str(title or type(override).__qualname__)
    built, parameters = VECTOR_STORES.load(name.partition("?")[0]), parse_parameters(name)
    if (parameters or is_dataclass(built)) and not name.startswith(FACTORY):
        built, parameters = VECTOR_STORES.find(name).value, {}
    return built, parameters, name
