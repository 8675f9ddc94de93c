"""Every vector store keeps to the contract of vector stores, and to what random data asks of it."""

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

from rag_lab.models.protocols import Vectors
from rag_lab.stores import vector_stores
from rag_lab.stores.config import STORE_NAMES, STORES
from rag_lab.stores.engine import EngineStore, ExactStore, Rows
from rag_lab.stores.registry import store_class
from rag_lab.testing import VectorStoreContract
from rag_lab.testing.contracts.corpus import exact, random_units


def some_of(n: int, size: int) -> st.SearchStrategy[list[int]]:
    """`size` numbers below n."""
    return st.lists(st.integers(0, n - 1), min_size=size, max_size=size)


@pytest.fixture(params=STORE_NAMES)
def name(request: pytest.FixtureRequest) -> Any:
    pytest.importorskip(STORES[request.param].needs)
    return request.param


def build(name: Any, path: Path, ids: list[str], vectors: Vectors, labels: list[str] | None = None) -> Any:
    store = store_class(name)
    store.build(path, ids, vectors, labels or ["public"] * len(ids))
    return store.open(path)


class TestStores(VectorStoreContract):
    @pytest.fixture(autouse=True)
    def _each(self, name: Any) -> None:
        self.name, self.quantized = name, STORES[name].quantized

    def make(self) -> type[EngineStore]:
        return store_class(self.name)


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
    assert index.search(queries, 10, allowed) == exact(ids, vectors, queries, 10, rows)


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
    assert index.search(vectors[:3], k, allowed) == exact(ids, vectors, vectors[:3], k, rows)


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
from rag_lab.stores.registry import store_class
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
    names = [name for name in STORE_NAMES if find_spec(STORES[name].needs)]
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


N, DIM = 1500, 24


@pytest.mark.parametrize("share", [2, 10, 100])
def test_a_filtered_walk_finds_the_true_neighbours(share: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("faiss")
    vectors = np.random.default_rng(0).normal(size=(N, DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids, labels = [str(row) for row in range(N)], ["rest" if row % share else "some" for row in range(N)]
    for store in (vector_stores.FaissStore, ExactStore):
        store.build(tmp_path / store.__name__, ids, vectors, labels)
    walked = vector_stores.FaissStore.open(tmp_path / "FaissStore")
    expected = ExactStore.open(tmp_path / "ExactStore").search(vectors[:30], 10, frozenset({"some"}))
    monkeypatch.setattr(vector_stores, "_FAISS_FEW_ROWS", 0)
    monkeypatch.setattr(Rows, "scan", None)
    assert walked.search(vectors[:30], 10, frozenset({"some"})) == expected
