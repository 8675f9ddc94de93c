"""Any LangChain vector store, by the adapter."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from rag_lab.errors import StoreError
from rag_lab.stores.engine import ExactStore
from rag_lab.stores.langchain import LangChainStore, PrecomputedEmbeddings
from rag_lab.stores.registry import langchain_stores

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
