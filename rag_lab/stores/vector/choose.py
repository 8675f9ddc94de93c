"""The store that a configuration names."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import is_dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, cast

from rag_lab._kit.parameters import parse_parameters
from rag_lab._kit.registry import FACTORY
from rag_lab._kit.source_digest import source_digest
from rag_lab.errors import ConfigError, RagLabError, StoreError
from rag_lab.models.requirements import missing_package
from rag_lab.stores.vector.engine import EngineStore
from rag_lab.stores.vector.names import STORES, VECTOR_STORES
from rag_lab.stores.vector.own_store import LangChainStores, OwnStores, Stores

if TYPE_CHECKING:
    from rag_lab.stores.config import StoreConfig


def store_problem(name: str) -> str:
    """Return why a store cannot be used here, in one sentence, or ''."""
    if name in STORES:
        problem = missing_package(STORES[name].module, "rag_lab[stores]")
        return f"store.name ({name}): {problem}" if problem else ""
    try:
        _own(name)
    except RagLabError as error:
        return f"store.name: {error}"
    return ""


def store_class(name: str) -> type[EngineStore]:
    """Return the class of a built-in store.

    Raises:
        StoreError: if its package is not installed.
    """
    if problem := store_problem(name):
        raise StoreError(problem)
    module, _, attribute = STORES[name].target.partition(":")
    return cast("type[EngineStore]", getattr(importlib.import_module(module), attribute))


def stores_of(store: StoreConfig, given: Any = None) -> Stores:
    """Return what builds and opens the store that `store` names, or `given`: an object in its place.

    Raises:
        StoreError: if its package is not installed.
        ConfigError: if there is no such store, or it is none.
    """
    if given is None and store.name in STORES:
        return store_class(store.name)
    made, parameters, name = _own(store.name) if given is None else (given, {}, _title(given))
    what = f"vector store {name!r}"
    if isinstance(made, type) and issubclass(made, EngineStore):
        return made
    if callable(getattr(made, "build", None)) and callable(getattr(made, "open", None)):
        return OwnStores(made, what)
    if not callable(made):
        raise ConfigError(f"The {what} needs the methods build and open, or to make a store of LangChain's.")
    return LangChainStores(made, parameters, what)


def identity(store: StoreConfig, given: Any = None) -> dict[str, Any]:
    """Return what can change the store's results: its name, its server, its packages' versions, its source.

    Raises:
        StoreError: if its package is not installed.
        ConfigError: if there is no such store.
    """
    if given is None and store.name in STORES:
        store_class(store.name)
        versions = {name: version(name) for name in STORES[store.name].distributions}
        return {"name": store.name, "url": store.url, "libraries": versions}
    made, _, name = _own(store.name) if given is None else (given, {}, _title(given))
    source = source_digest(made if hasattr(made, "__qualname__") else type(made))
    return {"name": name, "url": store.url, "source": source, "version": getattr(made, "version", 0)}


def _own(name: str) -> tuple[Any, Mapping[str, Any], str]:
    """Return what a name stands for, its parameters, and the name."""
    made, parameters = VECTOR_STORES.load(name.partition("?")[0]), parse_parameters(name)
    if (parameters or is_dataclass(made)) and not name.startswith(FACTORY):
        made, parameters = VECTOR_STORES.find(name).made, {}
    return made, parameters, name


def _title(given: Any) -> str:
    """Return what tells an object in memory from others: an instance with its parameters, else its name."""
    if is_dataclass(given):
        return repr(given)
    return str(getattr(given, "__qualname__", type(given).__qualname__))
