"""Splitters that somebody brings: what they return becomes spans, and what they do wrong costs one document."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from langchain_text_splitters import CharacterTextSplitter, RecursiveCharacterTextSplitter

from rag_lab._kit.registry import modules_from
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import CorpusIndex, open_index
from rag_lab.corpus.spans import Span
from rag_lab.corpus.splitters import Unsplit, splitter_of
from rag_lab.errors import ConfigError, DatasetError

SOURCE = """
from dataclasses import dataclass
from typing import ClassVar
from langchain_text_splitters import RecursiveCharacterTextSplitter

def paragraphs(text):
    return text.split("\\n\\n")

@dataclass(frozen=True)
class Windows:
    size: int = 9
    version: ClassVar[int] = 1

    def __call__(self, text):
        return [(start, min(len(text), start + self.size)) for start in range(0, len(text), self.size)]

@dataclass(frozen=True)
class Whole:
    version: ClassVar[int] = 1

    def identity(self):
        return {"name": "whole", "version": 1}

    def split(self, texts):
        return [[(0, len(text))] for text in texts]

def library():
    return RecursiveCharacterTextSplitter(chunk_size=20, chunk_overlap=8)

def picky(text):
    if "oven" in text:
        raise ValueError("I do not like ovens")
    return [text]
"""
TEXT = "The press is oiled.\n\nThe press is oiled.\n\nThe valve opens at 275 bar. The press is oiled."
NAMES = ["mine:paragraphs", "mine:Windows?size=30", "mine:Whole", "langchain:mine:library"]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "mine.py").write_text(SOURCE)
    with modules_from(tmp_path):
        yield tmp_path


def spans_of(text: str, given: Any = None, name: str = "recursive") -> list[Span] | Unsplit:
    (found,) = splitter_of(CorpusConfig(splitter=name), None, given).split([text])
    return found


def opened(folder: Path, name: str, embedder: Any, given: Any = None, **changes: Any) -> CorpusIndex:
    config = CorpusConfig(splitter=name, **changes)
    return open_index(folder / "corpus", config, embedder, home=folder / "home", splitter=given)


@pytest.mark.parametrize("name", ["recursive", "sentences", "markdown", *NAMES])
def test_pieces_are_spans_that_hold_the_text(folder: Path, name: str) -> None:
    spans = spans_of(TEXT, name=name)
    assert isinstance(spans, list) and spans == sorted(spans)
    assert all(TEXT[start:end].strip() == TEXT[start:end] != "" for start, end in spans)
    held = {place for start, end in spans for place in range(start, end)}
    assert all(place in held or letter.isspace() for place, letter in enumerate(TEXT))


def test_equal_paragraphs_stand_in_their_own_places(folder: Path) -> None:
    assert spans_of(TEXT, name="mine:paragraphs") == [(0, 19), (21, 40), (42, len(TEXT))]


def test_a_splitter_of_langchain_in_memory_is_told_from_another_by_its_settings() -> None:
    def identity(given: Any) -> Any:
        return splitter_of(CorpusConfig(), None, given).identity()

    def sized(size: int) -> RecursiveCharacterTextSplitter:
        return RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=0)

    assert spans_of("one two three", sized(8)) == [(0, 7), (8, 13)]
    assert identity(sized(8)) == identity(sized(8)) != identity(sized(9))
    with pytest.raises(ConfigError, match=r"has a object as its separator.*langchain:module:function"):
        identity(_with(CharacterTextSplitter(), "_separator", object()))


def _with(made: Any, name: str, value: Any) -> Any:
    setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ([(0, 999)], r"the span 0-999 of a text of \d+ characters"),
        ([(3, 3)], "the span 3-3"),
        ([(19, 21)], "a blank piece"),
        (["The press", " "], "a blank piece"),
        (["The pump"], r"piece 1 \('The pump'\), which does not stand in the text there"),
        (["The valve", "oiled.\n\nThe press"], "piece 2 .* does not stand in the text there"),
        (["The press", (0, 3)], "where a piece or a span is due"),
        ("The press", "returned str where a list of pieces or spans is due"),
        (None, "returned NoneType where"),
        ([], "returned no piece"),
    ],
)
def test_what_is_no_piece_of_the_text_is_a_reason(returned: Any, said: str) -> None:
    @dataclass(frozen=True)
    class Wrong:
        version: ClassVar[int] = 1

        def __call__(self, text: str) -> Any:
            return returned

    found = spans_of(TEXT, Wrong())
    assert isinstance(found, Unsplit)
    with pytest.raises(AssertionError, match=said):
        raise AssertionError(found.reason)


@pytest.fixture
def corpus(folder: Path) -> Path:
    (folder / "corpus").mkdir()
    (folder / "corpus" / "oven.txt").write_text("The oven is hot.")
    (folder / "corpus" / "press.txt").write_text("The press is oiled.\n\n| part | torque |\n")
    return folder


def test_a_file_that_cannot_be_split_is_a_problem_and_the_rest_goes_on(corpus: Path, embedder: Any) -> None:
    index = opened(corpus, "mine:picky", embedder)
    assert [file.source for file in index.files] == ["press.txt"]
    (problem,) = index.problems
    assert "oven.txt" in problem.path
    assert problem.reason == "left out, since the splitter 'mine:picky' raised ValueError: I do not like ovens."
    assert index.is_retryable
    (corpus / "mine.py").write_text(SOURCE.replace('"oven" in text', "False"))
    mended = opened(corpus, "mine:picky", embedder)
    assert [file.source for file in mended.files] == ["oven.txt", "press.txt"] and not mended.is_retryable
    assert mended.digest != index.digest


def test_a_corpus_of_which_nothing_is_split_says_why(corpus: Path, embedder: Any) -> None:
    (corpus / "corpus" / "press.txt").unlink()
    with pytest.raises(DatasetError, match=r"(?s)None of 1 file can be used:.*I do not like ovens"):
        opened(corpus, "mine:picky", embedder)


def test_text_in_no_piece_and_cut_rows_are_said(corpus: Path, embedder: Any) -> None:
    @dataclass(frozen=True)
    class First:
        version: ClassVar[int] = 1

        def __call__(self, text: str) -> list[str]:
            return [text[:27]]

    index = opened(corpus, "recursive", embedder, First())
    (problem,) = index.problems
    assert problem.reason.endswith("6 letters and digits in no piece, so never found; 1 table row is cut.")
    assert index.manifest.n_children == 2
