"""Vector stores that somebody brings keep to the contract by way of the workbench's rows, or are refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.vectorstores import InMemoryVectorStore

from rag_lab._kit.registry import modules_from
from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError, StoreError
from rag_lab.stores.config import VECTOR_STORES, StoreConfig
from rag_lab.stores.registry import identity, store_problem, stores_of
from rag_lab.testing import VectorStoreContract
from rag_lab.testing.contracts.corpus import random_units

SOURCE = """
import json
from langchain_core.vectorstores import InMemoryVectorStore
import numpy as np
from rag_lab.stores.engine import EngineStore

class Mine:
    version = 1

    def __init__(self, path):
        self.path = path

    @classmethod
    def build(cls, path, ids, vectors, labels, url=""):
        path.mkdir()
        np.save(path / "v.npy", vectors)
        (path / "about.json").write_text(json.dumps([ids, labels]))

    @classmethod
    def open(cls, path):
        return cls(path)

    def search(self, vectors, k, allowed=None):
        ids, labels = json.loads((self.path / "about.json").read_text())
        kept = [row for row, label in enumerate(labels) if allowed is None or label in allowed]
        near = vectors @ np.load(self.path / "v.npy")[kept].T
        best = np.argsort(-near, axis=1)[:, :k]
        return [[ids[kept[n]] for n in row] for row in best], np.take_along_axis(near, best, 1).tolist()

class Engine(EngineStore):
    exact = True

    def _fill(self):
        pass

    def _nearest(self, queries, n_wanted, numbers):
        return self.rows.scan(queries, n_wanted, numbers)

class Raises(Mine):
    def search(self, vectors, k, allowed=None):
        raise OSError("disk full")

class Leaks(Mine):
    def search(self, vectors, k, allowed=None):
        return super().search(vectors, k)

class Twice(Mine):
    def search(self, vectors, k, allowed=None):
        return [["0", "0"] for _ in vectors], [[1.0, 1.0] for _ in vectors]

def library(embeddings):
    store = InMemoryVectorStore(embeddings)
    return store, lambda labels: {"filter": lambda document: document.metadata["label"] in labels}

NUMBER = 3
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "mine.py").write_text(SOURCE)
    with modules_from(folder):
        yield folder


class TestOwnStores(VectorStoreContract):
    @pytest.fixture(autouse=True, params=["mine:Mine", "mine:Engine", "langchain:mine:library"])
    def _each(self, request: pytest.FixtureRequest) -> None:
        self.name = request.param

    def make(self) -> Any:
        return VECTOR_STORES.load(self.name)


def searched(path: Path, name: str, given: Any = None, allowed: frozenset[str] | None = None) -> Any:
    stores = stores_of(StoreConfig(name=name), given)
    stores.build(path / "store", list("abc"), random_units(3, 0), ["public", "secret", "public"])
    return stores.open(path / "store").search(random_units(3, 0)[:2], 2, allowed)


def test_a_store_of_langchain_comes_by_its_name_and_as_an_object(tmp_path: Path) -> None:
    name = "langchain:langchain_core.vectorstores:InMemoryVectorStore"
    found = searched(tmp_path / "named", name)
    assert [ids[0] for ids in found[0]] == ["a", "b"]
    assert searched(tmp_path / "given", "chroma", InMemoryVectorStore) == found == searched(tmp_path / "exact", "exact")
    with pytest.raises(StoreError, match="has no label_filter"):
        searched(tmp_path / "restricted", name, allowed=frozenset({"public"}))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mine:Raises", r"The vector store 'mine:Raises' raised OSError: disk full"),
        ("mine:Leaks", "returned a child that it should not have"),
        ("mine:Twice", "The vector store 'mine:Twice' returned an id twice"),
    ],
)
def test_what_a_store_does_wrong_is_said(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(StoreError, match=said):
        searched(tmp_path, name, allowed=frozenset({"public"}))


def test_a_name_is_checked_when_written_and_found_when_used(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"did you mean chroma"):
        PipelineConfig().override({"store.name": "chrome"})
    assert store_problem("mine:Mine") == ""
    assert "has no 'Yours'" in store_problem("mine:Yours")
    with pytest.raises(ConfigError, match="needs the methods build and open"):
        stores_of(StoreConfig(name="mine:NUMBER"))
    before = identity(StoreConfig(name="mine:Mine"))
    (folder / "mine.py").write_text(SOURCE + "\n")
    assert identity(StoreConfig(name="mine:Mine")) != before


def test_an_index_is_searched_in_it(tmp_path: Path) -> None:
    vectors = np.repeat(random_units(4, 1), 3, axis=0)
    stores = stores_of(StoreConfig(name="mine:Mine"))
    stores.build(tmp_path / "store", [f"c{n}" for n in range(12)], vectors, ["public"] * 12)
    assert stores.open(tmp_path / "store").search(vectors[:1], 5)[0][0][:3] == ["c0", "c1", "c2"]
