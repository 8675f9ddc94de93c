"""File readers that somebody brings: by suffix, checked, and read again where they were edited."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile_files import HANGING, HOSTILE
from langchain_community.document_loaders import TextLoader

from rag_lab._kit.registry import modules_from
from rag_lab.config import PipelineConfig
from rag_lab.corpus import reading as bounded
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import CorpusIndex, open_index
from rag_lab.corpus.load.loader import Loaded, LoadError
from rag_lab.corpus.reading import LOADERS, load, load_bounded
from rag_lab.data.dataset import Dataset
from rag_lab.errors import ConfigError, DatasetError
from rag_lab.records import Document
from rag_lab.testing import HashEmbedder

SOURCE = """
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path
from typing import ClassVar
from langchain_core.documents import Document

def read(path):
    mail = message_from_bytes(path.read_bytes())
    return f"{mail['Subject']}\\n\\n{mail.get_payload()}"

@dataclass(frozen=True)
class Pages:
    mark: str = "--"
    version: ClassVar[int] = 1

    def __call__(self, path):
        return path.read_text().split(self.mark)

def documents(path):
    return [Document(page_content=path.read_text(), metadata={"page": n, "title": "T"}) for n in (0, 2)]

def number(path):
    return 7

def fails(path):
    raise ValueError("no mail")

def secretly(path):
    return path.read_text() + Path("other.cfg").read_text()
"""
MAIL = "Subject: Oil\n\nChange it.--Every year."


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mail.py").write_text(SOURCE)
    (tmp_path / "other.cfg").write_text("x")
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.EML").write_text(MAIL)
    (tmp_path / "corpus" / "b.txt").write_text("The oven is hot.")
    with modules_from(tmp_path):
        yield tmp_path


@pytest.fixture
def opened(folder: Path, embedder: Any) -> Any:
    def open_again(reader: str, given: Any = None) -> CorpusIndex:
        config = CorpusConfig(readers={".eml": reader} if reader else {})
        return open_index(
            folder / "corpus", config, embedder, home=folder / "home", readers={".eml": given} if given else {}
        )

    return open_again


def texts(index: CorpusIndex) -> list[str]:
    return [child.text for child in index.chunks.children() if child.source == "a.EML"]


@pytest.mark.parametrize(
    ("reader", "found", "pages"),
    [
        ("mail:read", ["Oil\n\nChange it.--Every year."], [None]),
        ("mail:Pages", ["Subject: Oil\n\nChange it.", "Every year."], [1, 2]),
        ("mail:Pages?mark=it.--", ["Subject: Oil\n\nChange", "Every year."], [1, 2]),
        ("mail:documents", [MAIL, MAIL], [1, 3]),
        ("langchain:langchain_community.document_loaders:TextLoader?encoding=utf-8", [MAIL], [None]),
        ("text", [MAIL], [None]),
    ],
)
def test_files_of_a_suffix_are_read_by_what_is_named(
    opened: Any, reader: str, found: list[str], pages: list[int | None]
) -> None:
    index = opened(reader)
    assert [file.source for file in index.files] == ["a.EML", "b.txt"] and index.problems == ()
    assert texts(index) == found
    assert [child.page for child in index.chunks.children() if child.source == "a.EML"] == pages


def test_without_a_reader_they_are_passed_over_and_said(opened: Any) -> None:
    index = opened("")
    assert [file.source for file in index.files] == ["b.txt"]
    assert "files ending in .eml are not read" in index.problems[0].reason


def test_readers_are_given_as_objects_too(opened: Any) -> None:
    def whole(path: Path) -> Loaded:
        return Loaded((Document("other", None, path.read_text().upper()),), ("shouted",))

    assert texts(opened("", TextLoader)) == [MAIL]
    index = opened("mail:fails", whole)
    assert texts(index) == [MAIL.upper()]
    assert [problem.reason for problem in index.problems] == ["shouted"]


@pytest.mark.parametrize(
    ("reader", "said"),
    [
        ("mail:fails", "the file reader 'mail:fails' raised ValueError: no mail."),
        ("mail:number", "the file reader 'mail:number' returned int where text, or texts, are due."),
    ],
)
def test_what_a_reader_cannot_read_costs_that_file(opened: Any, folder: Path, reader: str, said: str) -> None:
    index = opened(reader)
    assert [file.source for file in index.files] == ["b.txt"]
    assert [problem.reason for problem in index.problems] == [said] and index.is_retryable
    with pytest.raises(ConfigError, match=r"reads .*other\.cfg, which it does not name"):
        opened("mail:secretly")


def test_an_edited_reader_reads_its_files_again(opened: Any, folder: Path) -> None:
    before = opened("mail:read")
    assert opened("mail:read").digest == before.digest
    (folder / "mail.py").write_text(SOURCE.replace("mail['Subject']", "'Mail'"))
    after = opened("mail:read")
    assert after.digest != before.digest and texts(after) == ["Mail\n\nChange it.--Every year."]


@pytest.mark.parametrize(
    ("readers", "said"),
    [
        ({"eml": "text"}, r"a suffix is written like \.eml"),
        ({".eml": "txet"}, r"one of your own as module:Class \(did you mean text\?\)"),
        ({".eml": "text?keep=1"}, "takes its parameters from the configuration"),
    ],
)
def test_a_reader_that_can_not_be_is_one_sentence(readers: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        PipelineConfig().override({"corpus.readers": readers})


def test_a_folder_of_such_files_alone_is_a_dataset(folder: Path, embedder: Any) -> None:
    (folder / "corpus" / "b.txt").unlink()
    dataset = Dataset.load(folder / "corpus", labelled=False)
    with pytest.raises(DatasetError, match="holds no"):
        open_index(dataset.corpus_dir, CorpusConfig(), embedder, home=folder / "home")
    config = CorpusConfig(readers={".eml": "mail:read"})
    assert open_index(dataset.corpus_dir, config, embedder, home=folder / "home").manifest.n_files == 1


@pytest.fixture
def good(tmp_path):
    (tmp_path / "good.txt").write_text("The relief valve opens at 275 bar.")
    return tmp_path / "good.txt"


def made(folder, name, files=HANGING):
    files[name](folder / name)
    return folder / name


def worker():
    process = bounded.worker._process
    return process.pid if process else None


def test_a_file_that_takes_too_long_is_refused_and_the_next_one_is_read(tmp_path, good):
    with pytest.raises(LoadError, match=r"takes more than 0.5 s to read; .*corpus.file_seconds") as caught:
        load_bounded(made(tmp_path, "forms.pdf"), "forms.pdf", seconds=0.5)
    assert caught.value.lasting
    assert load_bounded(good, "good.txt").documents[0].source == "good.txt"


def test_a_file_that_takes_too_much_memory_is_refused_and_the_next_one_is_read(tmp_path, good):
    HOSTILE["far_cells.xlsx"][0](tmp_path / "far.xlsx")
    with pytest.raises(LoadError, match="more than 2 GiB of memory"):
        load_bounded(tmp_path / "far.xlsx", "far.xlsx")
    assert load_bounded(good, "good.txt").documents


def test_a_process_that_was_started_before_is_asked_and_one_that_has_ended_is_replaced(good):
    process = bounded.worker.start()
    assert load_bounded(good, "good.txt").documents and worker() == process.pid
    process.kill()  # as it does itself after a minute in which nothing was read
    process.wait()
    assert bounded.worker.start().pid != process.pid
    assert load_bounded(good, "good.txt").documents


def test_one_process_reads_file_after_file(good):
    load_bounded(good, "good.txt")
    first = worker()
    with pytest.raises(LoadError, match="cannot be read"):
        load_bounded(good.with_name("missing.txt"), "missing.txt")
    load_bounded(good, "good.txt")
    assert worker() == first


def test_a_process_that_somebody_ended_is_replaced_and_the_file_is_read(good):
    load_bounded(good, "good.txt")
    os.kill(worker(), signal.SIGKILL)
    assert load_bounded(good, "good.txt").documents


def test_it_reads_where_the_working_folder_is_another_one(good, monkeypatch, tmp_path):
    load_bounded(good, "good.txt")
    monkeypatch.chdir(tmp_path)
    assert load_bounded(Path("good.txt"), "good.txt").documents


@pytest.mark.slow
def test_hanging_files_are_named_and_the_rest_is_indexed_and_remembered(tmp_path, good):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    good.rename(corpus / "good.txt")
    for name in HANGING:
        made(corpus, name)
    for _ in range(2):
        index = open_index(corpus, CorpusConfig(file_seconds=1), HashEmbedder(), home=tmp_path / "home")
        assert [file.source for file in index.files] == ["good.txt"]
        assert sorted(Path(one.path).name for one in index.problems) == sorted(HANGING)
        assert all("more than 1 s to read" in problem.reason for problem in index.problems)
        assert not index.is_retryable


READS = """
import sys
from pathlib import Path
from rag_lab.corpus.reading import load_bounded
print("reads", flush=True)
load_bounded(Path(sys.argv[1]), "forms.pdf", seconds=100)
"""


@pytest.mark.slow
def test_ctrl_c_stops_a_file_that_hangs(tmp_path):
    path = made(tmp_path, "forms.pdf")
    command = [sys.executable, "-c", READS, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "reads\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2)  # it hangs
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate(timeout=50)[1]


TEXT = [".txt", ".md", ".markdown", ".csv", ".tsv", ".html", ".htm"]


@pytest.mark.parametrize("suffix", TEXT)
def test_the_suffix_chooses_the_loader_whatever_its_case(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix.upper()}"
    path.write_text("# Title\nbody\n")
    (document,) = load(path, path.name).documents
    table = "| # Title |\n| --- |\n| body |"
    assert document.text == {".html": "# Title body", ".htm": "# Title body"}.get(
        suffix, table if suffix in (".csv", ".tsv") else "# Title\nbody"
    )


def test_text_is_normalized(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("Cafe\u0301  \n\n\n\nhydrau-\nlic \ufb01lter, 58\u00a0°C\u200b\n")
    assert load(path, "a.txt").documents[0].text == "Caf\u00e9\n\nhydraulic filter, 58 °C"


def test_a_line_that_is_no_prose_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("word " * 250_000)
    with pytest.raises(LoadError, match="a line of 1,250,000 characters"):
        load(path, "a.txt")


def test_more_text_than_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a line of words\n" * 700_000)
    with pytest.raises(LoadError, match="more than 10,000,000"):
        load(path, "a.txt")


@pytest.mark.parametrize("suffix", LOADERS)
def test_every_loader_refuses_an_empty_file_in_one_sentence(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.touch()
    with pytest.raises(LoadError, match=r"^the .* empty.*\.$"):
        load(path, path.name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("text")
    path.chmod(0)
    with pytest.raises(LoadError, match="permission"):
        load(path, path.name)
