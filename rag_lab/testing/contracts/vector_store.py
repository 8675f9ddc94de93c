"""The contract of a vector store: see `rag_lab.stores.rows`. Exact search is the reference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_lab.models.protocols import Vectors
from rag_lab.models.unit_vectors import unit_vectors
from rag_lab.stores.config import StoreConfig
from rag_lab.stores.engine import SearchedRows
from rag_lab.stores.registry import Stores, stores_of
from rag_lab.stores.rows import Found

DIM = 32
_ROUNDING = 1e-5


def unit(vectors: npt.ArrayLike) -> Vectors:
    """Return `vectors` with rows of length 1."""
    return unit_vectors(np.asarray(vectors, np.float32))


def random_units(n: int, seed: int) -> Vectors:
    """Return n directions."""
    return unit(np.random.default_rng(seed).normal(size=(n, DIM)))


def exact(ids: Sequence[str], vectors: Vectors, queries: Vectors, k: int, rows: Sequence[int] | None = None) -> Found:
    """Return the best of `rows` (all where None) by double precision rounded to seven digits, ties by row."""
    rows = range(len(ids)) if rows is None else rows
    found, cosines = [], []
    for query in queries:
        near = (vectors.astype(float) @ query.astype(float)).round(7).tolist()
        best = sorted(rows, key=lambda row: (-near[row], row))[:k]
        found.append([ids[row] for row in best])
        cosines.append([near[row] for row in best])
    return found, cosines


class VectorStoreContract:
    """A vector store, in each of the forms in which one can be named; see docs/stores.md."""

    def make(self) -> Any:
        """Return the class, the instance or the factory that is tested."""
        raise NotImplementedError("make() returns the store that is tested: a class, an instance or a factory.")

    def stores(self) -> Stores:
        """Return it as an index is built and opened by it."""
        return stores_of(StoreConfig(), self.make())

    def build(self, path: Path, ids: Sequence[str], vectors: Vectors, labels: Sequence[str] = ()) -> SearchedRows:
        """Build a store in a new folder below `path` and open it."""
        self.stores().build(path / "store", ids, vectors, labels or ["public"] * len(ids))
        return self.stores().open(path / "store")

    def test_cosines_are_exact_and_sorted(self, tmp_path: Path) -> None:
        store = self.build(tmp_path, ["east", "north", "north-east"], unit([[1, 0], [0, 1], [1, 1]]))
        ids, cosines = store.search(unit([[1, 0], [0, -1]]), 3)
        assert ids == [["east", "north-east", "north"], ["east", "north-east", "north"]]
        np.testing.assert_allclose(cosines, [[1, 0.5**0.5, 0], [0, -(0.5**0.5), -1]], atol=_ROUNDING)
        assert all(type(cosine) is float for cosine in cosines[0])

    def test_k_beyond_the_size_gives_everything(self, tmp_path: Path) -> None:
        store = self.build(tmp_path, list("abc"), random_units(3, 0))
        assert [sorted(row) for row in store.search(random_units(2, 1), 50)[0]] == [list("abc")] * 2

    def test_no_queries_give_nothing(self, tmp_path: Path) -> None:
        assert self.build(tmp_path, ["a"], random_units(1, 0)).search(np.zeros((0, DIM), np.float32), 3) == ([], [])

    def test_ties_keep_the_order_of_insertion_even_across_the_cut(self, tmp_path: Path) -> None:
        vectors = np.repeat(random_units(2, 3), 60, axis=0)
        ids = [str(name) for name in np.random.default_rng(0).permutation(120)]
        store = self.build(tmp_path, ids, vectors)
        for k in (1, 3, 40):
            assert store.search(vectors[:1], k)[0] == [ids[:k]]

    def test_it_gives_the_lists_of_exact_search(self, tmp_path: Path) -> None:
        vectors, queries = random_units(1500, 5), random_units(20, 6)
        vectors[700:720] = vectors[40:60]  # ties
        queries[:10] = vectors[40:50]
        ids = [f"dir/file.pdf#p{number}/0" for number in range(len(vectors))]
        store = self.build(tmp_path, ids, vectors)
        for k in (1, 10, 100):
            assert store.search(queries, k) == exact(ids, vectors, queries, k)

    def test_a_filter_is_applied_before_the_cut(self, tmp_path: Path) -> None:
        vectors = np.vstack([np.repeat(unit([[1] + [0] * (DIM - 1)]), 400, axis=0), unit([[-1] + [0] * (DIM - 1)])])
        ids = [f"c{number}" for number in range(401)]
        store = self.build(tmp_path, ids, vectors, ["secret"] * 400 + ["public"])
        assert store.search(vectors[:2], 5, frozenset({"public"}))[0] == [["c400"], ["c400"]]
        assert store.search(vectors[:2], 5, frozenset({"unheard-of"})) == ([[], []], [[], []])
        assert store.search(vectors[:1], 5, frozenset())[0] == [[]]
        assert store.search(vectors[:1], 5, frozenset({"public", "secret", "other"}))[0] == [ids[:5]]
        assert store.labels == {"public", "secret"}

    def test_copies_of_one_text_hide_nothing(self, tmp_path: Path) -> None:
        random = np.random.default_rng(2)
        order = random.permutation(2500)
        vectors = np.vstack([np.repeat(random_units(3, 12), 700, axis=0), random_units(400, 13)])[order]
        queries = vectors[np.flatnonzero(order >= 2100)[:40]]
        ids = [f"c{number}" for number in range(len(vectors))]
        assert self.build(tmp_path, ids, vectors).search(queries, 10) == exact(ids, vectors, queries, 10)

    def test_it_is_found_again_after_its_folder_was_moved(self, tmp_path: Path) -> None:
        vectors = random_units(50, 7)
        self.stores().build(tmp_path / "partial", [str(n) for n in range(50)], vectors, ["even", "odd"] * 25)
        (tmp_path / "partial").rename(tmp_path / "moved")
        found, _ = self.stores().open(tmp_path / "moved").search(vectors[:3], 1, frozenset({"even"}))
        assert [found[0], found[2]] == [["0"], ["2"]]
