import hashlib
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_lab.errors import ModelError
from rag_lab.memory.results import Replayed
from rag_lab.models import remembered_vectors as remembered_embedder
from rag_lab.models.protocols import Vectors
from rag_lab.models.remembered_vectors import RememberedEmbedder, Watch


class Digests:
    """Turns a text's digest into a unit vector, differently for queries, and counts what it was asked."""

    def __init__(self, name: str = "a", break_after: int | None = None) -> None:
        self.name = name
        self.break_after = break_after
        self.seen: list[str] = []
        self.texts_a_second = 0

    def identity(self) -> Mapping[str, Any]:
        return {"name": self.name}

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if self.break_after is not None and len(self.seen) >= self.break_after:
            raise KeyboardInterrupt
        self.seen += texts
        bytes_ = [list(hashlib.sha256((self.name + text).encode()).digest()) for text in texts]
        rows = np.array(bytes_, np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return -self.embed_documents(texts)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home/vectors.sqlite"


def test_each_text_is_embedded_once_and_comes_back_in_its_place(path: Path) -> None:
    inner = Digests()
    embedder = RememberedEmbedder(inner, path)
    first = embedder.embed_documents(["b", "a", "b"])
    assert sorted(inner.seen) == ["a", "b"]
    again = RememberedEmbedder(inner, path).embed_documents(["c", "a", "b"])
    assert sorted(inner.seen) == ["a", "b", "c"]
    np.testing.assert_array_equal(first, Digests().embed_documents(["b", "a", "b"]))
    np.testing.assert_array_equal(again, Digests().embed_documents(["c", "a", "b"]))
    assert again.dtype == np.float32 and again.flags.writeable


def test_more_texts_than_one_query_or_portion_holds(path: Path) -> None:
    texts = [f"text {number} {'x' * (number % 37)}" for number in range(1700)]
    embedder = RememberedEmbedder(Digests(), path)
    expected = Digests().embed_documents(texts)
    np.testing.assert_array_equal(embedder.embed_documents(texts), expected)
    np.testing.assert_array_equal(embedder.embed_documents(texts[::-1]), expected[::-1])


def test_questions_and_passages_are_kept_apart(path: Path) -> None:
    embedder = RememberedEmbedder(Digests(), path)
    np.testing.assert_array_equal(embedder.embed_documents(["a"]), -embedder.embed_queries(["a"]))


def test_models_are_kept_apart(path: Path) -> None:
    one, other = (RememberedEmbedder(Digests(name), path).embed_documents(["a"]) for name in "ab")
    assert not np.allclose(one, other)


def test_no_texts_ask_nothing(path: Path) -> None:
    assert RememberedEmbedder(Digests(), path).embed_documents([]).shape == (0, 0)
    assert not path.exists()


def test_what_was_embedded_before_a_kill_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered_embedder, "_MOST_TEXTS", 4)
    texts = [f"text {number}" for number in range(10)]
    with pytest.raises(KeyboardInterrupt):
        RememberedEmbedder(Digests(break_after=8), path).embed_documents(texts)
    inner = Digests()
    RememberedEmbedder(inner, path).embed_documents(texts)
    assert len(inner.seen) == 2


@pytest.mark.slow
def test_the_bar_moves_as_often_on_a_slow_machine_as_on_a_fast_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, portions = [0.0], []

    class Machine(Digests):
        def embed_documents(self, texts: Sequence[str]) -> Vectors:
            portions.append(len(texts))
            now[0] += len(texts) / self.texts_a_second
            return super().embed_documents(texts)

    monkeypatch.setattr(remembered_embedder.time, "perf_counter", lambda: now[0])
    texts = [f"{number:0800}" for number in range(2000)]
    for speed, longest in [(20, 32), (100, 128), (10_000, 512)]:
        portions.clear()
        machine = Machine(str(speed))
        machine.texts_a_second = speed
        RememberedEmbedder(machine, path).embed_documents(texts)
        assert (portions[0], max(portions), sum(portions)) == (32, longest, 2000)
        assert all(size % 32 == 0 for size in portions[:-1])


def test_what_was_never_embedded_is_told_without_a_model(path: Path) -> None:
    embedder = RememberedEmbedder(Digests(), path)
    assert list(embedder.known_documents(["a", "b", "a"]).values()) == ["a", "b"]
    assert not path.exists()
    embedder.embed_queries(["a"])
    embedder.embed_documents(["b"])
    assert list(embedder.known_documents(["a", "b", "a"]).values()) == ["a", None]
    assert embedder.known_documents(["b"]).items() <= embedder.known_documents(["a", "b"]).items()
    assert all(RememberedEmbedder(Digests("other"), path).known_documents(["a", "b"]).values())


@pytest.mark.parametrize("bad", [np.full((1, 3), np.nan), np.ones((2, 3)), np.ones(3)])
def test_a_bad_vector_is_refused_and_never_remembered(path: Path, bad: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = Digests()
    embedder = RememberedEmbedder(inner, path)
    with monkeypatch.context() as patch:
        patch.setattr(inner, "embed_documents", lambda texts: bad)
        with pytest.raises(ModelError, match="one finite vector"):
            embedder.embed_documents(["a"])
    assert np.isfinite(embedder.embed_documents(["a"])).all()


def test_the_identity_is_the_models(path: Path) -> None:
    assert RememberedEmbedder(Digests("x"), path).identity() == {"name": "x"}


def test_threads_may_share_it(path: Path) -> None:
    embedder = RememberedEmbedder(Digests(), path)
    texts = [f"text {number}" for number in range(200)]
    results: list[Vectors] = []
    threads = [threading.Thread(target=lambda: results.append(embedder.embed_documents(texts))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6
    for result in results:
        np.testing.assert_array_equal(result, Digests().embed_documents(texts))


def test_what_a_vector_took_is_replayed_to_whoever_finds_it_made(path: Path) -> None:
    replayed = Replayed()
    embedder = RememberedEmbedder(Digests(), path, replayed=replayed)
    embedder.embed_queries(["a", "b"])
    assert replayed.seconds == 0
    embedder.embed_queries(["a", "b", "c"])
    first = replayed.seconds
    embedder.embed_queries(["a", "b", "a"])  # what is asked twice at once is found once
    assert first > 0 and replayed.seconds == pytest.approx(2 * first)


@pytest.mark.parametrize("progress", [False, lambda done, of: None], ids=["questions", "indexes of the same texts"])
def test_what_several_miss_at_the_same_time_is_embedded_once(path: Path, progress: Watch) -> None:
    inner, all_asked = Digests(), threading.Barrier(3)
    texts = [[f"text {n} of {of}" for n in range(40)] for of in ("all", "none", "me")]
    asked = [texts[0]] * 3 if progress else [texts[0], [*texts[0], *texts[1]], [*texts[0], *texts[2]]]

    def embed(some: Sequence[str]) -> None:
        embedder = RememberedEmbedder(inner, path, progress)
        all_asked.wait()
        embedder.embed_documents(some)

    threads = [threading.Thread(target=embed, args=[some]) for some in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(inner.seen) == sorted({text for some in asked for text in some})


def test_indexes_of_other_texts_are_embedded_side_by_side(path: Path) -> None:
    both = threading.Barrier(2, timeout=60)

    class Together(Digests):
        def embed_documents(self, texts: Sequence[str]) -> Vectors:
            both.wait()  # breaks where one waits for the other
            return super().embed_documents(texts)

    watched = [RememberedEmbedder(Together(), path, lambda done, of: None) for _ in range(2)]
    threads = [threading.Thread(target=one.embed_documents, args=[[f"text {n}"]]) for n, one in enumerate(watched)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not both.broken
