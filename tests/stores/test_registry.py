"""Vector stores that somebody brings keep to the contract by way of the workbench's rows, or are refused."""

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from rag_lab._kit.registry import modules_from
from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError, StoreError
from rag_lab.stores import registry
from rag_lab.stores.config import STORE_NAMES, STORES, VECTOR_STORES, StoreConfig
from rag_lab.stores.engine import ExactStore
from rag_lab.stores.langchain import LangChainStore, PrecomputedEmbeddings
from rag_lab.stores.registry import identity, langchain_stores, store_problem, stores_of
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


N, DIM = 300, 24
IDS = [f"c{number}" for number in range(N)]
LABELS = ["secret" if number % 3 else "public" for number in range(N)]
ALLOWED = frozenset({"public"})


@pytest.fixture
def exact(tmp_path: Path) -> ExactStore:
    vectors = np.random.default_rng(0).normal(size=(N, DIM)).astype(np.float32)
    vectors[100:110] = vectors[:10]
    ExactStore.build(tmp_path / "rows", IDS, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), LABELS)
    return ExactStore.open(tmp_path / "rows")


def by_label(labels: frozenset[str]) -> dict[str, Any]:
    return {"filter": lambda document: document.metadata["label"] in labels}


@pytest.mark.parametrize("k", [1, 7, N + 5])
@pytest.mark.parametrize("allowed", [None, ALLOWED, frozenset({"public", "secret"}), frozenset()])
def test_langchains_store_in_memory_gives_the_lists_of_exact_search(
    exact: ExactStore, k: int, allowed: frozenset[str] | None
) -> None:
    mine = LangChainStore.fill(exact, InMemoryVectorStore(PrecomputedEmbeddings(exact)), by_label)
    queries = exact.rows.vectors[95:105]
    assert mine.search(queries, k, allowed) == exact.search(queries, k, allowed)


def test_a_store_with_other_embeddings_is_refused(exact: ExactStore) -> None:
    with pytest.raises(StoreError, match="InMemoryVectorStore embeds with DeterministicFakeEmbedding; make it with"):
        LangChainStore.fill(exact, InMemoryVectorStore(DeterministicFakeEmbedding(size=3)))


def test_without_a_filter_a_restricted_search_is_refused(exact: ExactStore) -> None:
    mine = LangChainStore.fill(exact, InMemoryVectorStore(PrecomputedEmbeddings(exact)))
    assert mine.search(exact.rows.vectors[:1], 3)[0] == exact.search(exact.rows.vectors[:1], 3)[0]
    with pytest.raises(StoreError, match="has no label_filter"):
        mine.search(exact.rows.vectors[:1], 3, ALLOWED)


def test_a_filter_that_lets_something_through_is_refused(exact: ExactStore) -> None:
    mine = LangChainStore.fill(exact, InMemoryVectorStore(PrecomputedEmbeddings(exact)), lambda labels: {})
    with pytest.raises(StoreError, match="returned a child that label_filter should have kept out"):
        mine.search(exact.rows.vectors[1:2], 3, ALLOWED)


def test_a_filter_after_the_search_is_refused(exact: ExactStore) -> None:
    """As LangChain's FAISS store filters, within the twenty that it fetched."""

    class FilteredLate(InMemoryVectorStore):
        def similarity_search(self, query: str, k: int = 4, **options: Any) -> Any:
            keep = options.pop("filter", lambda document: True)
            return [document for document in super().similarity_search(query, k) if keep(document)]

    mine = LangChainStore.fill(exact, FilteredLate(PrecomputedEmbeddings(exact)), by_label)
    with pytest.raises(StoreError, match="of 19 children that it was asked for and has"):
        mine.search(exact.rows.vectors[:1], 3, ALLOWED)


class WithoutLookup(InMemoryVectorStore):
    """As LangChain's older stores, which find nothing by id."""

    def get_by_ids(self, ids: Any, /) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("kind", [InMemoryVectorStore, WithoutLookup])
def test_a_store_that_keeps_its_rows_is_filled_once(tmp_path: Path, exact: ExactStore, kind: Any) -> None:
    kept: list[Any] = []

    def factory(embeddings: PrecomputedEmbeddings) -> Any:
        kept[:] = kept or [kind(embeddings)]
        kept[0].embedding = embeddings
        return kept[0]

    stores = langchain_stores(factory, {}, "store")
    queries = exact.rows.vectors[95:105]
    for _ in range(3):
        assert stores.open(exact.path).search(queries, 5) == exact.search(queries, 5)
    assert len(kept[0].store) == len(exact.rows)
    del kept[0].store[next(iter(kept[0].store))]  # as after a kill while it was filled
    stores.open(exact.path)
    assert len(kept[0].store) == len(exact.rows)
    ExactStore.build(tmp_path / "others", IDS[:50], exact.rows.vectors[50:100], LABELS[:50])
    with pytest.raises(StoreError, match="holds other rows than those of this index; empty it, or give each index"):
        stores.open(tmp_path / "others").search(queries, 5)


@pytest.mark.parametrize(
    ("name", "url", "problem"),
    [
        ("exact", "http://localhost:1", "exact has no server, so url must be empty; chroma and qdrant may have one"),
        ("chroma", "localhost:8000", "url must be http://host:port or https://host:port"),
        ("chroma", "http://:8000", "url must be http://host:port or https://host:port"),
        ("qdrant", "http://host:port", "url must be http://host:port or https://host:port"),
        ("qdrant", "https://me:word@host:6333", "url must hold no user, password or key"),
        ("qdrant", "https://host:6333/?api_key=word", "url must hold no user, password or key"),
    ],
    ids=["no server", "no scheme", "no host", "no port", "a password", "a key"],  # addresses would pass for secrets
)
def test_an_impossible_url_is_refused(name: str, url: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as error:
        PipelineConfig().override({"store.name": name, "store.url": url})
    assert "word" not in str(error.value).replace("password", "")


def test_a_store_that_needs_float32_is_refused_before_anything_runs() -> None:
    with pytest.raises(ConfigError, match="chroma cannot keep vectors as binary; exact and faiss can"):
        PipelineConfig().override({"store.vectors": "binary"})
    plain, fewer = StoreConfig(name="exact"), StoreConfig(name="exact", vectors="int8")
    assert "vectors" not in identity(plain)  # what was indexed before stays
    assert identity(fewer) != identity(plain)


@pytest.mark.parametrize("url", ["http://localhost:8000", "https://vectors.example.org", "http://[::1]:6333/"])
def test_a_url_names_a_server(url: str) -> None:
    assert PipelineConfig().override({"store.name": "qdrant", "store.url": url}).store.url == url


def test_every_store_that_is_installed_has_a_class_and_an_identity() -> None:
    for name in STORE_NAMES:
        if find_spec(STORES[name].needs):
            assert registry.store_problem(name) == ""
            assert registry.store_class(name).build
            assert registry.identity(StoreConfig(name=name))["libraries"].keys() == set(STORES[name].distributions)


def test_a_store_that_is_not_installed_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(STORES, "milvus", replace(STORES["milvus"], needs="nobodys_milvus"))
    with pytest.raises(StoreError, match=r"^store.name \(milvus\): .* pip install 'rag_lab\[stores\]'\.$"):
        registry.store_class("milvus")
