"""FAISS's graph under a filter that leaves many rows: it is walked, not replaced by comparing all."""

from pathlib import Path

import numpy as np
import pytest

from rag_lab.stores import vector_stores
from rag_lab.stores.engine import ExactStore, Rows

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
