"""The contract of a vector store, run over every implementation; exact search by NumPy is the reference."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tolerance import FLOAT32

from rag_lab.models.protocols import Vectors
from rag_lab.stores.vector.choose import store_class
from rag_lab.stores.vector.names import STORE_NAMES, STORES

DIM = 32


def unit(vectors: Any) -> Vectors:
    rows = np.asarray(vectors, np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def random_units(n: int, seed: int) -> Vectors:
    return unit(np.random.default_rng(seed).normal(size=(n, DIM)))


def some_of(n: int, size: int) -> st.SearchStrategy[list[int]]:
    """`size` numbers below n."""
    return st.lists(st.integers(0, n - 1), min_size=size, max_size=size)


@pytest.fixture(params=STORE_NAMES)
def name(request: pytest.FixtureRequest) -> Any:
    pytest.importorskip(STORES[request.param].module)
    return request.param


def build(name: Any, path: Path, ids: list[str], vectors: Vectors, labels: list[str] | None = None) -> Any:
    store = store_class(name)
    store.build(path, ids, vectors, labels or ["public"] * len(ids))
    return store.open(path)


def reference(
    ids: list[str], vectors: Vectors, queries: Vectors, k: int, rows: list[int] | None = None
) -> tuple[list[list[str]], list[list[float]]]:
    """Every allowed row, by double precision rounded to seven digits, ties by row."""
    rows = list(range(len(ids))) if rows is None else rows
    found, cosines = [], []
    for query in queries:
        near = (vectors.astype(float) @ query.astype(float)).round(7).tolist()
        best = sorted(rows, key=lambda row: (-near[row], row))[:k]
        found.append([ids[row] for row in best])
        cosines.append([near[row] for row in best])
    return found, cosines


def test_cosines_are_exact_and_sorted(name: Any, tmp_path: Path) -> None:
    index = build(name, tmp_path / "store", ["east", "north", "north-east"], unit([[1, 0], [0, 1], [1, 1]]))
    ids, cosines = index.search(unit([[1, 0], [0, -1]]), 3)
    assert ids == [["east", "north-east", "north"], ["east", "north-east", "north"]]
    np.testing.assert_allclose(cosines, [[1, 0.5**0.5, 0], [0, -(0.5**0.5), -1]], atol=FLOAT32)
    assert all(type(cosine) is float for cosine in cosines[0])


def test_k_beyond_the_size_gives_everything(name: Any, tmp_path: Path) -> None:
    index = build(name, tmp_path / "store", list("abc"), random_units(3, 0))
    assert [sorted(row) for row in index.search(random_units(2, 1), 50)[0]] == [list("abc")] * 2


def test_no_queries_give_nothing(name: Any, tmp_path: Path) -> None:
    index = build(name, tmp_path / "store", ["a"], random_units(1, 0))
    assert index.search(np.zeros((0, DIM), np.float32), 3) == ([], [])


@pytest.mark.parametrize("k", [1, 3, 40])
def test_ties_keep_the_order_of_insertion_even_across_the_cut(name: Any, tmp_path: Path, k: int) -> None:
    vectors = np.repeat(random_units(2, 3), 60, axis=0)
    ids = [f"{name}" for name in np.random.default_rng(0).permutation(120)]
    index = build(name, tmp_path / "store", ids, vectors)
    assert index.search(vectors[:1], k)[0] == [ids[:k]]


def test_every_store_gives_the_lists_of_exact_search(name: Any, tmp_path: Path) -> None:
    """At this size the approximate stores find the true neighbours too; `benchmarks/growth.py` measures larger ones."""
    vectors, queries = random_units(1500, 5), random_units(20, 6)
    vectors[700:720] = vectors[40:60]  # ties
    queries[:10] = vectors[40:50]
    ids = [f"dir/file.pdf#p{number}/0" for number in range(len(vectors))]
    index = build(name, tmp_path / "store", ids, vectors)
    for k in (1, 10, 100):
        assert index.search(queries, k) == reference(ids, vectors, queries, k)


def test_a_filter_is_applied_before_the_cut(name: Any, tmp_path: Path) -> None:
    """The one allowed row is the farthest of all: a filter after the cut would return nothing."""
    vectors = np.vstack([np.repeat(unit([[1] + [0] * (DIM - 1)]), 400, axis=0), unit([[-1] + [0] * (DIM - 1)])])
    ids = [f"c{number}" for number in range(401)]
    index = build(name, tmp_path / "store", ids, vectors, ["secret"] * 400 + ["public"])
    assert index.search(vectors[:2], 5, frozenset({"public"}))[0] == [["c400"], ["c400"]]
    assert index.search(vectors[:2], 5, frozenset({"unheard-of"})) == ([[], []], [[], []])
    assert index.search(vectors[:1], 5, frozenset())[0] == [[]]
    assert index.search(vectors[:1], 5, frozenset({"public", "secret", "other"}))[0] == [ids[:5]]
    assert index.labels == {"public", "secret"}


@pytest.mark.slow
@pytest.mark.parametrize("n_allowed", [1, 12, 300, 1100])
def test_a_filtered_search_is_the_search_of_a_store_of_the_allowed(name: Any, tmp_path: Path, n_allowed: int) -> None:
    vectors, queries = random_units(1200, 9), random_units(20, 10)
    rows = sorted(np.random.default_rng(1).permutation(1200)[:n_allowed].tolist())
    labels = ["secret"] * 1200
    for row in rows:
        labels[row] = f"group {row % 3}"
    ids = [f"c{number}" for number in range(1200)]
    index = build(name, tmp_path / "store", ids, vectors, labels)
    allowed = frozenset({"group 0", "group 1", "group 2"})
    assert index.search(queries, 10, allowed) == reference(ids, vectors, queries, 10, rows)


def test_copies_of_one_text_hide_nothing(name: Any, tmp_path: Path) -> None:
    """In a graph of near neighbours copies fill each other's lists, and what lies beyond them is lost."""
    random = np.random.default_rng(2)
    order = random.permutation(2500)
    vectors = np.vstack([np.repeat(random_units(3, 12), 700, axis=0), random_units(400, 13)])[order]
    queries = vectors[np.flatnonzero(order >= 2100)[:40]]
    ids = [f"c{number}" for number in range(len(vectors))]
    index = build(name, tmp_path / "store", ids, vectors)
    assert index.search(queries, 10) == reference(ids, vectors, queries, 10)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_nothing_is_found_that_is_not_allowed(name: Any, tmp_path_factory: Any, data: st.DataObject) -> None:
    labels = data.draw(st.lists(st.sampled_from(["", "a", '["b"]', "ç / ü"]), min_size=1, max_size=30))
    allowed = data.draw(st.frozensets(st.sampled_from(["", "a", '["b"]', "ç / ü", "none"])))
    k = data.draw(st.integers(1, 40))
    vectors = random_units(5, data.draw(st.integers(0, 99)))[data.draw(some_of(5, len(labels)))]
    ids = [str(number) for number in range(len(labels))]
    index = build(name, tmp_path_factory.mktemp("stores") / "store", ids, vectors, labels)
    rows = [row for row, label in enumerate(labels) if label in allowed]
    assert index.search(vectors[:3], k, allowed) == reference(ids, vectors, vectors[:3], k, rows)


def test_a_graph_of_faiss_does_not_depend_on_a_race(tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    vectors = random_units(600, 11)
    graphs = []
    for folder in "ab":
        build("faiss", tmp_path / folder, [str(number) for number in range(600)], vectors)
        graphs.append((tmp_path / folder / "hnsw.faiss").read_bytes())
    assert graphs[0] == graphs[1]


def test_every_id_needs_a_label(name: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one label an id: 3, 3, 2"):
        store_class(name).build(tmp_path / "store", list("abc"), random_units(3, 0), ["public", "secret"])


READ = """
import json, sys
from pathlib import Path
import numpy as np
from rag_lab.stores.vector.choose import store_class
folder, *names = sys.argv[1:]
queries = np.load(Path(folder) / "queries.npy")
found = {name: store_class(name).open(Path(folder) / name).search(queries, 7, frozenset({"even"})) for name in names}
print(json.dumps(found))
"""


@pytest.mark.slow
def test_another_process_reads_the_same_after_the_folder_was_moved(tmp_path: Path) -> None:
    """And at the same time: sweeps run variants side by side."""
    vectors, queries = random_units(250, 7), random_units(3, 8)
    labels = ["odd" if number % 2 else "even" for number in range(250)]
    names = [name for name in STORE_NAMES if find_spec(STORES[name].module)]
    here = {}
    for name in names:
        build(name, tmp_path / "partial", [f"c{number}" for number in range(250)], vectors, labels)
        (tmp_path / "partial").rename(tmp_path / name)
        here[name] = store_class(name).open(tmp_path / name)
        assert here[name].search(queries, 7, frozenset({"even"}))[0]
    np.save(tmp_path / "queries.npy", queries)
    command = [sys.executable, "-c", READ, str(tmp_path), *names]
    there = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = json.loads(there.splitlines()[-1])
    for name, store in here.items():
        assert tuple(found[name]) == store.search(queries, 7, frozenset({"even"})), name
