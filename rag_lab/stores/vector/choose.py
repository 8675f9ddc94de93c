"""The store that a configuration names."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rag_lab.errors import StoreError
from rag_lab.models.protocols import Vectors
from rag_lab.models.requirements import missing_package
from rag_lab.stores.vector.engine import EngineStore
from rag_lab.stores.vector.names import STORES, StoreName

if TYPE_CHECKING:
    from rag_lab.stores.config import StoreConfig


def store_problem(name: StoreName) -> str:
    """Return why a store cannot be used here, in one sentence, or ''."""
    problem = missing_package(STORES[name].module, "rag_lab[stores]")
    return f"store.name ({name}): {problem}" if problem else ""


def store_class(name: StoreName) -> type[EngineStore]:
    """Return the class of a store.

    Raises:
        StoreError: if its package is not installed.
    """
    if problem := store_problem(name):
        raise StoreError(problem)
    module, _, attribute = STORES[name].target.partition(":")
    return cast("type[EngineStore]", getattr(importlib.import_module(module), attribute))


def build(store: StoreConfig, path: Path, ids: Sequence[str], vectors: Vectors, labels: Sequence[str]) -> None:
    """Write the store that `store` names into the folder `path`; see `EngineStore.build`."""
    store_class(store.name).build(path, ids, vectors, labels, store.url)


def identity(store: StoreConfig) -> dict[str, Any]:
    """Return what can change the store's results: its name, its server, its packages' versions.

    Raises:
        StoreError: if its package is not installed.
    """
    store_class(store.name)
    versions = {name: version(name) for name in STORES[store.name].distributions}
    return {"name": store.name, "url": store.url, "libraries": versions}
