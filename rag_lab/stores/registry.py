"""The store that a configuration names, built in or custom.

Of a custom store the workbench keeps the rows, checks what it finds, and scores and orders it.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast

from rag_lab._kit.digest import source_digest
from rag_lab._kit.registry import FACTORY, parse_parameters, version
from rag_lab.errors import ConfigError, RagLabError, StoreError
from rag_lab.models.protocols import Vectors
from rag_lab.models.requirements import missing_package
from rag_lab.stores import engine, vector_stores
from rag_lab.stores.config import STORES, VECTOR_STORES, StoreConfig

_FOLDER = "own"


class Stores(NamedTuple):
    """What builds stores and opens them; see `EngineStore`."""

    build: Callable[..., Any]
    open: Callable[[Path], engine.SearchedRows]


class CustomStore(engine.SearchedRows):
    """Rows in a folder, searched by a custom store."""

    exact: ClassVar[bool] = False  # for all that is known of it

    def __init__(self, path: Path, custom: Any, what: str) -> None:
        super().__init__(path)
        self._custom, self._what = custom, what

    def _nearest(self, queries: Vectors, n_wanted: int, numbers: engine.Numbers | None) -> engine.Nearest:
        allowed = None if numbers is None else frozenset(self.rows.labels[number] for number in numbers)
        with engine.failing(self._what):
            ids, cosines = self._custom.search(queries, n_wanted, allowed)
            found = [[int(name) for name in some] for some in ids]
            near = [[float(cosine) for cosine in some] for some in cosines]
        if len(found) != len(queries) or any(len(a) != len(b) for a, b in zip(found, near, strict=False)):
            raise StoreError(f"The {self._what} returned {len(found)} lists of ids for {len(queries)} queries.")
        if any(len(set(rows)) < len(rows) or min(rows, default=0) < 0 or len(rows) > n_wanted for rows in found):
            raise StoreError(f"The {self._what} returned an id twice, none of its ids, or more than {n_wanted}.")
        return vector_stores.padded(found, near, n_wanted)


def store_problem(name: str) -> str:
    """Return why a store cannot be used here, in one sentence, or ''."""
    if name in STORES:
        problem = missing_package(STORES[name].needs, "rag_lab[stores]")
        return f"store.name ({name}): {problem}" if problem else ""
    try:
        _load(name)
    except RagLabError as error:
        return f"store.name: {error}"
    return ""


def store_class(name: str) -> type[engine.EngineStore]:
    """Return the class of a built-in store; `StoreError` if its package is not installed."""
    if problem := store_problem(name):
        raise StoreError(problem)
    module, _, attribute = STORES[name].target.partition(":")
    return cast("type[engine.EngineStore]", getattr(importlib.import_module(module), attribute))


def stores_of(store: StoreConfig, override: Any = None) -> Stores:
    """Return what builds and opens the store that `store` names, or `override`: an object in its place."""
    if override is None and store.name in STORES:
        built: Any = store_class(store.name)
        return Stores(partial(built.build, kind=store.vectors), built.open)
    built, parameters, name = _load(store.name, override)
    what = f"vector store {name!r}"
    if isinstance(built, type) and issubclass(built, engine.EngineStore):
        return Stores(partial(built.build, kind=store.vectors), built.open)
    if callable(getattr(built, "build", None)) and callable(getattr(built, "open", None)):
        return _custom_stores(built, what)
    if not callable(built):
        raise ConfigError(f"The {what} needs the methods build and open, or to make a store of LangChain's.")
    return langchain_stores(built, parameters, what)


def _custom_stores(custom: Any, what: str) -> Stores:
    """Return stores of a class, or an instance, with `build` and `open` as `EngineStore` has; its ids are rows."""

    def build(path: Path, ids: Sequence[str], vectors: engine.OfIds, labels: Sequence[str], url: str = "") -> None:
        rows = engine.Rows.write(path, ids, vectors, labels)
        names = [str(row) for row in range(len(rows))]
        of_rows = [rows.labels[number] for number in rows.label_numbers.tolist()]
        with engine.failing(what):
            custom.build(path / _FOLDER, names, rows.vectors, of_rows, url)

    def open_checked(path: Path) -> engine.SearchedRows:
        with engine.failing(what):
            return CustomStore(path, custom.open(path / _FOLDER), what)

    return Stores(build, open_checked)


def langchain_stores(factory: Any, parameters: Mapping[str, Any], what: str) -> Stores:
    """Return stores of LangChain's that `factory(embeddings)` makes, maybe with a label filter; rows are added."""

    def open_filled(path: Path) -> engine.SearchedRows:
        from rag_lab.stores.langchain import LangChainStore, PrecomputedEmbeddings

        rows = engine.ExactStore(path)
        with engine.failing(what):
            built = factory(PrecomputedEmbeddings(rows), **parameters)
            store, label_filter = built if isinstance(built, tuple) else (built, None)
            return LangChainStore.fill(rows, store, label_filter)

    return Stores(lambda path, ids, vectors, labels, url="": engine.Rows.write(path, ids, vectors, labels), open_filled)


def identity(store: StoreConfig, override: Any = None) -> dict[str, Any]:
    """Return what can change the store's results: its name, its server, its packages' versions, its source."""
    if override is None and store.name in STORES:
        store_class(store.name)
        versions = {name: version(name) for name in STORES[store.name].distributions}
        found = {"name": store.name, "url": store.url, "libraries": versions}
        return found if store.vectors == "float32" else found | {"vectors": [store.vectors, engine.QUANTIZED_VERSION]}
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
