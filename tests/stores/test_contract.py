"""The contract of a vector store, run over every implementation; the exact one is the reference."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_lab.models.base import Vectors
from rag_lab.stores.chroma import ChromaStore
from rag_lab.stores.exact import ExactStore

STORES = [ExactStore, ChromaStore]
DIM = 32


def unit(vectors: Any) -> Vectors:
    rows = np.asarray(vectors, np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def random_units(n: int, seed: int) -> Vectors:
    return unit(np.random.default_rng(seed).normal(size=(n, DIM)))


def built(store: Any, path: Path, ids: list[str], vectors: Vectors) -> Any:
    store.build(path / store.__name__, ids, vectors)
    return store.open(path / store.__name__)


@pytest.mark.parametrize("store", STORES)
def test_cosines_are_exact_and_sorted(store: Any, tmp_path: Path) -> None:
    index = built(store, tmp_path, ["east", "north", "north-east"], unit([[1, 0], [0, 1], [1, 1]]))
    ids, cosines = index.search(unit([[1, 0], [0, -1]]), 3)
    assert ids == [["east", "north-east", "north"], ["east", "north-east", "north"]]
    np.testing.assert_allclose(cosines, [[1, 0.5**0.5, 0], [0, -(0.5**0.5), -1]], atol=1e-6)
    assert all(isinstance(cosine, float) for cosine in cosines[0])


@pytest.mark.parametrize("store", STORES)
def test_k_beyond_the_size_gives_everything(store: Any, tmp_path: Path) -> None:
    index = built(store, tmp_path, list("abc"), random_units(3, 0))
    assert [sorted(row) for row in index.search(random_units(2, 1), 50)[0]] == [list("abc")] * 2


@pytest.mark.parametrize("store", STORES)
def test_no_queries_give_nothing(store: Any, tmp_path: Path) -> None:
    index = built(store, tmp_path, ["a"], random_units(1, 0))
    assert index.search(np.zeros((0, DIM), np.float32), 3) == ([], [])


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("k", [1, 3, 40])
def test_ties_keep_the_order_of_insertion_even_across_the_cut(store: Any, tmp_path: Path, k: int) -> None:
    vectors = np.repeat(random_units(2, 3), 60, axis=0)
    ids = [f"{name}" for name in np.random.default_rng(0).permutation(120)]
    index = built(store, tmp_path, ids, vectors)
    assert index.search(vectors[:1], k)[0] == [ids[:k]]


def test_the_stores_agree_on_many_vectors(tmp_path: Path) -> None:
    vectors, queries = random_units(1500, 5), random_units(300, 6)
    ids = [f"dir/file.pdf#p{number}/0" for number in range(len(vectors))]
    exact, chroma = (built(store, tmp_path, ids, vectors) for store in STORES)
    for k in (1, 10, 100):
        expected, cosines = exact.search(queries, k)
        found, found_cosines = chroma.search(queries, k)
        np.testing.assert_allclose(found_cosines, cosines, atol=1e-5)  # so no neighbour was missed
        places = [[ids.index(name) for name in row] for row in found]
        recomputed = np.take_along_axis(queries @ vectors.T, np.array(places), axis=1)
        np.testing.assert_allclose(found_cosines, recomputed, atol=1e-5)
        same_order = np.mean([row == other for row, other in zip(found, expected, strict=True)])
        assert same_order > 0.9  # cosines that differ in the seventh digit may change places


READ = """
import json, sys
from pathlib import Path
import numpy as np
from rag_lab.stores.chroma import ChromaStore
from rag_lab.stores.exact import ExactStore
store = {"ChromaStore": ChromaStore, "ExactStore": ExactStore}[sys.argv[1]]
print(json.dumps(store.open(Path(sys.argv[2])).search(np.load(sys.argv[3]), 7)))
"""


@pytest.mark.parametrize("store", STORES)
def test_another_process_reads_the_same_after_the_folder_was_moved(store: Any, tmp_path: Path) -> None:
    vectors, queries = random_units(250, 7), random_units(3, 8)
    store.build(tmp_path / "partial", [f"c{number}" for number in range(250)], vectors)
    (tmp_path / "partial").rename(tmp_path / "whole")
    np.save(tmp_path / "queries.npy", queries)
    command = [sys.executable, "-c", READ, store.__name__, str(tmp_path / "whole"), str(tmp_path / "queries.npy")]
    ids, cosines = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    here_ids, here_cosines = store.open(tmp_path / "whole").search(queries, 7)
    assert ids == here_ids
    np.testing.assert_allclose(cosines, here_cosines, atol=1e-6)
