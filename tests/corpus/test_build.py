"""What is read, cut and embedded again after a change: only what changed."""

import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from rag_lab.corpus import build_index
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import CorpusIndex, open_index
from rag_lab.corpus.folder import Changes
from rag_lab.corpus.load.loader import Loaded, LoadError
from rag_lab.corpus.reading import Reading
from rag_lab.models.protocols import ChatReply
from rag_lab.stores.config import StoreConfig
from rag_lab.testing import HashEmbedder, ScriptedChat

CONFIG = CorpusConfig(chunk_size=60, chunk_overlap=20, parent_size=200)
EXACT = StoreConfig(name="exact")
ROOT = Path(__file__).parents[2]


class Room:
    """A corpus, a home, and the files and documents that were read and cut since the last look."""

    def __init__(self, corpus: Path, home: Path, embedder: Any) -> None:
        self.corpus, self.home, self.embedder = corpus, home, embedder
        self.read: list[str] = []
        self.cut: list[str] = []

    def open(self, config: CorpusConfig = CONFIG) -> CorpusIndex:
        self.read.clear()
        self.cut.clear()
        self.embedder.seen.clear()
        index = open_index(self.corpus, config, self.embedder, home=self.home)
        index.ensure_vectors()
        return index


@pytest.fixture
def room(corpus: Path, tmp_path: Path, embedder: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    room = Room(corpus, tmp_path / "home", embedder)
    cut, load = build_index.cut, Reading.load

    def reading(self: Reading, path: Path, source: str) -> Loaded:
        room.read.append(source)
        return load(self, path, source)

    def cutting(documents: Any, config: Any, embedder: Any) -> Any:
        room.cut += [document.source for document in documents]
        return cut(documents, config, embedder)

    monkeypatch.setattr(Reading, "load", reading)
    monkeypatch.setattr(build_index, "cut", cutting)
    return room


def test_only_what_is_new_or_changed_is_read_and_cut(room: Room) -> None:
    first = room.open()
    assert sorted(room.read) == ["canteen.txt", "press/oil.txt", "press/relief_valve.md"]
    assert first.changes == Changes(added=tuple(sorted(room.read)))
    (room.corpus / "canteen.txt").write_text("The canteen is closed.")
    (room.corpus / "new.txt").write_text("A new file.")
    (room.corpus / "press/oil.txt").unlink()
    second = room.open()
    assert sorted(room.read) == ["canteen.txt", "new.txt"] and len(room.cut) == 2
    assert sorted(room.embedder.seen) == ["A new file.", "The canteen is closed."]
    assert second.changes == Changes(("new.txt",), ("canteen.txt",), ("press/oil.txt",))
    assert [file.source for file in second.files] == ["canteen.txt", "new.txt", "press/relief_valve.md"]


def test_an_unchanged_corpus_has_no_changes_and_asks_nothing_of_a_model(room: Room) -> None:
    first = room.open()
    again = room.open()
    assert (again.digest, again.changes) == (first.digest, Changes())
    assert room.read == room.cut == room.embedder.seen == []


def test_a_damaged_list_of_what_was_there_before_costs_no_more_than_the_news(room: Room, tmp_path: Path) -> None:
    first = room.open()
    (tracked,) = tmp_path.rglob("tracked/*")
    tracked.write_text("{")
    again = room.open()
    assert (again.digest, again.changes) == (first.digest, first.changes) and room.read == []


def test_another_cut_reads_no_file_again(room: Room) -> None:
    room.open()
    room.open(CorpusConfig(chunk_size=80, chunk_overlap=0))
    assert room.read == [] and len(room.cut) == 3
    (room.corpus / "new.txt").write_text("A new file.")
    room.open()
    assert room.read == ["new.txt"]


def test_a_moved_file_is_neither_read_nor_embedded_again(room: Room) -> None:
    room.open()
    (room.corpus / "canteen.txt").rename(room.corpus / "kitchen.txt")
    index = room.open()
    assert room.read == room.cut == room.embedder.seen == []
    (hit, *_) = index.search(room.embedder.embed_queries(["soup at noon"]), 1)[0]
    assert hit.source == "kitchen.txt" and index.chunks.parent(hit.parent_id).source == "kitchen.txt"


def test_a_file_without_a_title_has_its_own_name_wherever_it_lies(room: Room) -> None:
    (room.corpus / "torques.csv").write_text("Bolt,Nm\nM6,9\n")
    room.open()
    (room.corpus / "torques.csv").rename(room.corpus / "bolts.csv")
    index = room.open()
    assert room.read == []
    assert index.chunks.documents("bolts.csv")[0].title == "bolts"


def test_exact_duplicates_are_reported_read_once_and_both_found(room: Room) -> None:
    (room.corpus / "copy.txt").write_bytes((room.corpus / "canteen.txt").read_bytes())
    index = room.open()
    assert len(room.read) == 3
    (problem,) = index.problems
    assert Path(problem.path).name == "copy.txt" or "copy.txt" in problem.reason
    assert "the same as canteen.txt, byte for byte" in problem.reason
    hits = index.search(room.embedder.embed_queries(["canteen soup"]), 2)[0]
    assert {hit.source for hit in hits} == {"canteen.txt", "copy.txt"}


def test_a_bad_file_is_remembered_as_bad(room: Room) -> None:
    (room.corpus / "bad.pdf").write_bytes(b"nonsense")
    reasons = [problem.reason for problem in room.open().problems]
    (room.corpus / "new.txt").write_text("A new file.")
    again = room.open()
    assert room.read == ["new.txt"]
    assert [problem.reason for problem in again.problems] == reasons != []


def test_what_another_attempt_may_mend_is_not_remembered(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    load = Reading.load

    def failing(self: Reading, path: Path, source: str) -> Loaded:
        if source == "canteen.txt":
            raise LoadError("the file cannot be read; check its permissions.", lasting=False)
        return load(self, path, source)

    with monkeypatch.context() as patch:
        patch.setattr(Reading, "load", failing)
        assert room.open().manifest.n_documents == 2
    (room.corpus / "new.txt").write_text("A new file.")
    room.open()
    assert sorted(room.read) == ["canteen.txt", "new.txt"]


KILLED = """
import sys, os
from pathlib import Path
sys.path[:0] = [{root!r}, {tests!r}]
import conftest_words
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus import build_index
from rag_lab.corpus import corpus_index as child_vectors
from rag_lab.corpus.corpus_index import open_index

def die(*args):
    os.kill(os.getpid(), 9)

setattr({where}, {name!r}, die)
open_index(Path({corpus!r}), CorpusConfig(chunk_size=60, chunk_overlap=20, parent_size=200),
           conftest_words.HashedWords(), home=Path({home!r})).ensure_vectors()
"""


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("build_index", "process"),
        ("build_index", "write_chunks"),
        ("child_vectors.registry", "stores_of"),
        ("build_index.Path", "rename"),
    ],
)
def test_a_killed_run_leaves_the_old_index_or_the_new_one(room: Room, where: str, name: str, tmp_path: Path) -> None:
    old = room.open()
    before = sorted(path.name for path in (room.home / "indexes").iterdir())
    (room.corpus / "canteen.txt").write_text("The canteen is closed.")
    words = Path(__file__).with_name("conftest.py").read_text()
    (tmp_path / "conftest_words.py").write_text(words)
    code = KILLED.format(
        root=str(ROOT), tests=str(tmp_path), where=where, name=name, corpus=str(room.corpus), home=str(room.home)
    )
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, timeout=120)
    assert done.returncode == -9, done.stderr.decode()
    folders = [path for path in (room.home / "indexes").iterdir() if (path / "index.json").exists()]
    whole = {path.name for path in folders if ".partial-" not in path.name}
    assert whole == {old.digest} or (where == "child_vectors.registry" and old.digest in whole and len(whole) == 2)
    assert len([path for path in (room.home / "indexes").glob("*/searched/vectors-*") if not path.suffix]) == 1
    query = room.embedder.embed_queries(["canteen soup"])
    assert old.search(query, 1)[0][0].source == "canteen.txt"
    new = room.open()
    assert "closed" in new.chunks.parent(new.search(room.embedder.embed_queries(["canteen"]), 1)[0][0].parent_id).text
    after = {path.name for path in (room.home / "indexes").iterdir()}
    assert not any("partial" in name for name in after) and set(before) < after
    assert not list((room.home / "indexes").glob("*/searched/*.partial-*"))


PAGE = "The relief valve opens at 275 bar.\nThe oil is changed every year."
READING = f"# Valves\n\n{PAGE}"
DOWN = ChatReply(error="the server answered with status 500", transient=True)


@pytest.fixture
def small_corpus(tmp_path):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus/notes.txt").write_text("The canteen opens at 11:30.")
    pdf = pymupdf.open()
    for y in (72, 144):
        pdf.new_page().insert_text((72, y), PAGE)
    pdf.save(tmp_path / "corpus/a.pdf")
    return tmp_path / "corpus"


def opened(small_corpus, chat, **options):
    config = CorpusConfig(pdf="vision", vision_dpi=72)
    return open_index(small_corpus, config, HashEmbedder(), home=small_corpus.parent / "home", vision=chat, **options)


def test_an_index_made_in_an_outage_is_made_again_and_is_another_one(small_corpus):
    chat = ScriptedChat([DOWN, ChatReply(READING)])
    poor = opened(small_corpus, chat)
    assert poor.is_retryable
    assert poor.manifest.n_documents == 3  # the text layer stands in
    assert any("status 500" in str(problem) for problem in poor.problems)

    chat.script = lambda request: DOWN
    assert opened(small_corpus, chat).digest == poor.digest  # the outage lasts: nothing new to remember results under
    assert not opened(small_corpus, chat, build=False).is_built

    chat.script, chat.requests = (lambda request: ChatReply(READING)), []
    whole = opened(small_corpus, chat)
    assert len(chat.requests) == 1  # the page that had failed
    assert not whole.is_retryable
    assert whole.digest != poor.digest
    assert not any("status 500" in str(problem) for problem in whole.problems)

    chat.requests = []
    assert opened(small_corpus, chat).digest == whole.digest == opened(small_corpus, chat, build=False).digest
    assert chat.requests == []


def test_an_index_that_begins_as_a_copy_is_the_one_that_is_built_from_scratch(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies, copy, words = list[Path](), shutil.copyfile, ["valve opens", "oil leaks", "pump is new"]
    monkeypatch.setattr(shutil, "copyfile", lambda *paths: copies.append(paths[1]) or copy(*paths))
    long = "\n\n".join(f"{n} {words[n % 3]} at {n * 37 % 101} bar." for n in range(40))
    for name, text in {"b.md": long, "d.txt": "Oil leaks.", "f.md": f"# Pump\n\n{long}"}.items():
        (room.corpus / name).write_text(text)
    states: list[dict[str, str | None]] = [
        {"d.txt": long[:400]},  # grows, and shrinks
        {"f.md": "A pump."},
        {"a.md": "# New\n\nA valve opens.", "c.md": long[50:]},  # come first, and between others
        {"b.md": None, "e.md": long},  # has another name
        {"press/oil.txt": " \n"},  # cannot be used any more, and can again
        {"press/oil.txt": "The oil is new.", "canteen.txt": None},
        {"d.txt": "A pump."},  # a copy of another
        {"d.txt": "No copy.", "f.md": "None either."},
        {"zz.md": long[9:]},  # comes last
    ]
    scratch = tmp_path / "scratch"
    index = open_index(room.corpus, CONFIG, room.embedder, home=room.home, store=EXACT)
    index.ensure_vectors()
    for state in states:
        for name, content in state.items():
            (room.corpus / name).unlink() if content is None else (room.corpus / name).write_text(content)
        index = index.after(state)
        index.ensure_vectors()
        shutil.rmtree(scratch / "tracked", ignore_errors=True)
        whole = open_index(room.corpus, CONFIG, room.embedder, home=scratch, store=EXACT)
        assert (index.digest, index.manifest, index.problems) == (whole.digest, whole.manifest, whole.problems)
        for what in ("documents", "parents", "children", "labelled"):
            assert getattr(index.chunks, what)() == getattr(whole.chunks, what)()
        asked = room.embedder.embed_queries(words)
        assert index.search(asked, 50) == whole.search(asked, 50)
        made, same = (one.vectors.folder(one.path / build_index.SEARCHED) for one in (index, whole))
        for name in ("vectors.npy", "rows.npy", "labels.npy", "labels.json", "ids.json", "keys.bin"):
            assert (made / name).read_bytes() == (same / name).read_bytes()
    assert len(copies) == len(states) - 2


def test_rules_that_people_mend_hold_for_files_that_nobody_changed(room: Room) -> None:
    rules = room.corpus.parent / "attributes.yaml"
    rules.write_text("- {files: canteen.txt, namespace: food}\n")
    index = room.open()
    rules.write_text("- {files: canteen.txt, namespace: kitchen}\n")
    (room.corpus / "press/oil.txt").write_text("Never change the oil.")
    after = index.after({"press/oil.txt"})
    assert [file.attributes.namespace for file in after.files] == ["kitchen", "", ""]
    assert after.chunks.documents("press/oil.txt")[0].text == "Never change the oil."
