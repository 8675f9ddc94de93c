"""Files of an index that were damaged since they were written: the index is built again, whichever file it was."""

import logging
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from rag_lab.access import access_label
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import CorpusIndex, open_index
from rag_lab.stores.config import STORE_NAMES, STORES, StoreConfig
from rag_lab.stores.sparse import SPARSE

pytestmark = pytest.mark.slow

CONFIG = CorpusConfig(chunk_size=60, chunk_overlap=20, parent_size=200)
PUBLIC = frozenset({access_label("", ())})
QUESTIONS = ["torque of bolt M7 on machine 3", "secret torque"]


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    """Change one bit where the content begins to differ from that of other files, past the header."""
    content = bytearray(path.read_bytes())
    content[-1 if len(content) < 200 else len(content) * 2 // 3] ^= 1
    path.write_bytes(content)


def remove(path: Path) -> None:
    path.unlink()


def add(path: Path) -> None:
    path.with_name(f"{path.name}.other").write_bytes(b"?")


CASES = [(name, damage) for name in STORE_NAMES for damage in (truncate, flip)] + [("exact", remove), ("exact", add)]


@pytest.fixture
def guarded(tmp_path: Path) -> Path:
    """Files that everybody may see and files that only staff may."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number in range(4):
        lines = [f"Machine {number} part {part}: torque {number * part} Nm, bolt M{part}." for part in range(3)]
        (corpus / f"{'secret' if number % 2 else 'open'}_{number}.txt").write_text("\n".join(lines))
    (tmp_path / "attributes.yaml").write_text(yaml.safe_dump([{"files": "secret*", "permissions": ["staff"]}]))
    return corpus


def found(index: CorpusIndex, embedder: Any) -> Any:
    """What searches find, of all files and of the open ones, and whose the files are."""
    vectors = embedder.embed_queries(QUESTIONS)
    hits = [index.search(vectors, 50, allowed) for allowed in (None, PUBLIC)]
    for name in SPARSE:
        hits += [index.search_terms(name, "unicode", QUESTIONS, 50, allowed) for allowed in (None, PUBLIC)]
    assert all(hit.source.startswith("open") for lists in hits[1::2] for own in lists for hit in own)
    return hits, [index.text(hit) for hit in hits[0][0]], index.files, index.problems, index.chunks.labels


def files_of(path: Path) -> list[str]:
    return [file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file() and file.suffix != ".lock"]


@pytest.mark.parametrize(("name", "damage"), CASES)
def test_any_damaged_file_is_found_named_and_made_again(
    name: Any, damage: Callable[[Path], None], guarded: Path, tmp_path: Path, embedder: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    pytest.importorskip(STORES[name].needs)

    def opened() -> CorpusIndex:
        return open_index(guarded, CONFIG, embedder, home=tmp_path / "home", store=StoreConfig(name=name))

    index = opened()
    expected = found(index, embedder)
    names = [file for file in files_of(index.path) if (index.path / file).stat().st_size]
    assert {"index.json", "chunks.sqlite"} <= set(names)
    assert {file.split("/")[1].split("-")[0] for file in names if file.startswith("searched/")} == {"vectors", *SPARSE}
    assert any(file.endswith("/labels.npy") for file in names)
    kept = shutil.copytree(index.path, tmp_path / "kept")
    for file in names:
        shutil.rmtree(index.path)
        shutil.copytree(kept, index.path)
        damage(index.path / file)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert found(opened(), embedder) == expected, file
        (told,) = caplog.messages
        assert "was damaged (" in told
        assert told.endswith("; it is built again.")
        assert damage is add or file.endswith("digests.json") or f"{file.rpartition('/')[2]})" in told
    assert not list(index.path.parent.glob("*.partial-*"))


def test_an_index_is_whole_for_many_that_find_it_damaged(guarded: Path, tmp_path: Path, embedder: Any) -> None:
    def opened(_: int) -> CorpusIndex:
        return open_index(guarded, CONFIG, embedder, home=tmp_path / "home")

    expected = found(opened(0), embedder)
    truncate(opened(0).path / "chunks.sqlite")
    with ThreadPoolExecutor(3) as pool:
        assert [found(index, embedder) for index in pool.map(opened, range(3))] == [expected] * 3


def test_a_damaged_index_is_none_to_plan_with(guarded: Path, tmp_path: Path, embedder: Any) -> None:
    home = tmp_path / "home"
    index = open_index(guarded, CONFIG, embedder, home=home)
    index.ensure_vectors()
    assert index.is_built and index.has_vectors
    (labels,) = index.path.glob("searched/vectors-*/labels.npy")
    flip(labels)
    planned = open_index(guarded, CONFIG, embedder, home=home, build=False)
    assert planned.is_built and not planned.has_vectors
    flip(index.path / "chunks.sqlite")
    assert not open_index(guarded, CONFIG, embedder, home=home, build=False).is_built


def test_searching_changes_no_file_of_an_index(guarded: Path, tmp_path: Path, embedder: Any) -> None:
    for name in STORE_NAMES:
        index = open_index(guarded, CONFIG, embedder, home=tmp_path / "home", store=StoreConfig(name=name))
        index.ensure_vectors()
        before = {file: (index.path / file).read_bytes() for file in files_of(index.path)}
        index.search(embedder.embed_queries(QUESTIONS), 5)
        assert {file: (index.path / file).read_bytes() for file in files_of(index.path)} == before
