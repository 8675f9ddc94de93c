"""File readers that somebody brings: by suffix, checked, and read again where they were edited."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_community.document_loaders import TextLoader

from rag_lab._kit.registry import modules_from
from rag_lab.config import PipelineConfig
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import CorpusIndex, open_index
from rag_lab.corpus.load.loader import Loaded
from rag_lab.data.dataset import Dataset
from rag_lab.errors import ConfigError, DatasetError
from rag_lab.records import Document

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
