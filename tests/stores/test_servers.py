"""Stores whose vectors lie on a server: Chroma's own server, and Qdrant's interface in front of its Python engine."""

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from httpx import Client
from loopback_qdrant import qdrant_server
from tolerance import FLOAT32

from rag_lab.errors import StoreError
from rag_lab.models.protocols import Vectors
from rag_lab.stores.engine import ExactStore
from rag_lab.stores.vector_stores import ChromaStore, QdrantStore

pytestmark = pytest.mark.slow

N, DIM = 700, 24
IDS = [f"c{number}" for number in range(N)]
LABELS = ["secret" if number % 7 else "public" for number in range(N)]


def vectors(seed: int) -> Vectors:
    rows = np.random.default_rng(seed).normal(size=(N, DIM)).astype(np.float32)
    rows[300:330] = rows[0]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def chroma_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real `chroma run`."""
    folder = tmp_path_factory.mktemp("chroma")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = str(Path(sys.executable).with_name("chroma"))
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [program, "run", "--path", str(folder / "data"), "--host", "127.0.0.1", "--port", str(port)],
            stdout=log,
            stderr=log,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(f"{url}/api/v2/heartbeat", server)
        yield url
    finally:
        server.terminate()
        server.wait()


def _wait(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=1)
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    pytest.fail("chroma run does not answer")


@pytest.fixture(params=[ChromaStore, QdrantStore])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[Any, str]]:
    if request.param is ChromaStore:
        yield ChromaStore, request.getfixturevalue("chroma_url")
        return
    with qdrant_server() as server:
        yield QdrantStore, server.url


def test_a_server_gives_the_lists_of_exact_search(served: tuple[Any, str], tmp_path: Path) -> None:
    store, url = served
    store.build(tmp_path / "partial", IDS, vectors(0), LABELS, url)
    (tmp_path / "partial").rename(tmp_path / "served")
    ExactStore.build(tmp_path / "exact", IDS, vectors(0), LABELS)
    remote, exact = store.open(tmp_path / "served"), ExactStore.open(tmp_path / "exact")
    for allowed in (None, frozenset({"public"}), frozenset({"public", "secret"}), frozenset()):
        for k in (1, 5, N):
            assert remote.search(vectors(0)[:6], k, allowed) == exact.search(vectors(0)[:6], k, allowed)


def test_stores_on_one_server_do_not_mix(served: tuple[Any, str], tmp_path: Path) -> None:
    store, url = served
    for seed in (1, 2):
        store.build(tmp_path / str(seed), IDS, vectors(seed), LABELS, url)
    for seed in (1, 2):
        cosines = store.open(tmp_path / str(seed)).search(vectors(seed)[40:50], 1)[1]
        np.testing.assert_allclose(cosines, 1, atol=FLOAT32)


def test_a_collection_that_is_there_is_not_sent_again_and_a_torn_one_is(tmp_path: Path) -> None:
    with qdrant_server() as server:
        for folder in "ab":
            QdrantStore.build(tmp_path / folder, IDS, vectors(3), LABELS, server.url)
        assert server.upserts == 1
        collection = server.engine.get_collections().collections[0].name
        server.engine.delete(collection, points_selector=list(range(100)))
        QdrantStore.build(tmp_path / "c", IDS, vectors(3), LABELS, server.url)
        assert server.upserts == 2
        assert QdrantStore.open(tmp_path / "c").search(vectors(3)[:1], 1)[0] == [["c0"]]


def test_qdrants_key_is_sent_and_written_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QDRANT_API_KEY", "confidential-7")
    with qdrant_server() as server:
        QdrantStore.build(tmp_path / "store", IDS, vectors(4), LABELS, server.url)
        assert set(server.keys) == {"confidential-7"}
    assert not any(b"confidential" in file.read_bytes() for file in (tmp_path / "store").iterdir())


def test_a_server_that_fails_is_one_sentence(tmp_path: Path) -> None:
    with qdrant_server() as server:
        QdrantStore.build(tmp_path / "store", IDS, vectors(5), LABELS, server.url)
        server.broken = True
        with pytest.raises(StoreError, match=r"store at http://127.* failed: .*out of disk"):
            QdrantStore.open(tmp_path / "store").search(vectors(5)[:1], 1)


@pytest.mark.parametrize("store", [ChromaStore, QdrantStore])
def test_no_server_is_one_sentence(store: Any, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"^The vector store at http://127.0.0.1:9 failed: .*is store.url right\?$"):
        store.build(tmp_path / "store", IDS, vectors(6), LABELS, "http://127.0.0.1:9")


def test_a_server_that_lost_its_vectors_is_filled_again(
    served: tuple[Any, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, url = served
    store.build(tmp_path / "store", IDS, vectors(7), LABELS, url)
    expected = store.open(tmp_path / "store").search(vectors(7)[:3], 5)
    name = QdrantStore.open(tmp_path / "store").server.collection
    with Client(base_url=url) as client:
        path = "collections" if store is QdrantStore else "api/v2/tenants/default_tenant/databases/default_database"
        path += f"/{name}" if store is QdrantStore else f"/collections/{name}"
        assert client.delete(path).is_success
    assert store.open(tmp_path / "store").search(vectors(7)[:3], 5) == expected
    assert f"{name} at {url} is not whole; it is filled again." in caplog.messages


def test_a_server_that_returns_what_is_not_allowed_is_refused(tmp_path: Path) -> None:
    with qdrant_server() as server:
        QdrantStore.build(tmp_path / "store", IDS, vectors(8), LABELS, server.url)
        collection = server.engine.get_collections().collections[0].name
        server.engine.set_payload(collection, {"label": 0}, points=list(range(600)))
        with pytest.raises(StoreError, match=r"returned a child that it should not have"):
            QdrantStore.open(tmp_path / "store").search(vectors(8)[:6], N, frozenset({LABELS[0]}))


def test_a_foreign_env_file_does_not_choose_what_chroma_imports(tmp_path, monkeypatch):
    (tmp_path / ".env").write_text("CHROMA_PRODUCT_TELEMETRY_IMPL=antigravity.Any\n")
    monkeypatch.chdir(tmp_path)
    client = ChromaStore._connect(tmp_path / "store")
    assert client.list_collections() == []
    client.close()
