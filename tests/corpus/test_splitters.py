from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_text_splitters import CharacterTextSplitter, RecursiveCharacterTextSplitter

from rag_lab._kit.registry import modules_from
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import CorpusIndex, open_index
from rag_lab.corpus.spans import Span
from rag_lab.corpus.splitters import MarkdownSections, Semantic, Sentences, Unsplit, section_spans, splitter_of
from rag_lab.errors import ConfigError, DatasetError
from rag_lab.models import shared
from rag_lab.models.protocols import Vectors

TEXT = "One two three. Four five! Six seven eight nine? Ten."


def pieces(text: str, *numbers: int) -> list[str]:
    (spans,) = Sentences(*numbers).split([text])
    return [text[start:end] for start, end in spans]


def test_whole_sentences_up_to_the_words() -> None:
    assert pieces(TEXT, 5, 0, 1) == ["One two three. Four five!", "Six seven eight nine? Ten."]
    assert pieces(TEXT, 100, 0, 1) == [TEXT]


def test_neighbours_share_whole_sentences_within_the_overlap() -> None:
    assert pieces(TEXT, 6, 2, 1) == ["One two three. Four five!", "Four five! Six seven eight nine?", "Ten."]


def test_a_sentence_that_is_too_long_is_cut_between_words() -> None:
    assert pieces("a b c d e f g", 3, 1, 1) == ["a b c", "c d e", "e f g"]


def test_sentences_that_make_too_few_pieces_are_cut_between_words() -> None:
    assert pieces("One two three four. Five six seven.", 5, 1, 3) == ["One two three four. Five", "Five six seven."]
    assert pieces("One two three four five six. Seven.", 100, 0, 3) == ["One two three four five six. Seven."]


sizes = st.integers(5, 30).flatmap(lambda most: st.tuples(st.just(most), st.integers(0, most - 1)))


@given(lengths=st.lists(st.integers(1, 60), min_size=1, max_size=12), size=sizes, min_pieces=st.integers(1, 12))
@example(lengths=[41], size=(100, 20), min_pieces=3)  # 29 pieces of 13 words, once
def test_cut_between_words_a_text_makes_no_more_pieces_than_it_has_room_for(
    lengths: list[int], size: tuple[int, int], min_pieces: int
) -> None:
    most, overlap = size
    text = " ".join(" ".join(["word"] * length) + "." for length in lengths)
    whole = pieces(text, most, overlap, 1)
    found = pieces(text, most, overlap, min_pieces)
    if len(whole) >= min_pieces:
        assert found == whole
    else:
        assert len(found) == max(1, ceil((sum(lengths) - overlap) / (most - overlap)))
        assert all(len(piece.split()) == most for piece in found[:-1])


@given(n=st.integers(1, 80), below=st.integers(0, 60), min_pieces=st.integers(1, 5))
def test_a_text_of_few_words_stays_whole(n: int, below: int, min_pieces: int) -> None:
    text = "One. " * n
    found = pieces(text, 6, 2, min_pieces, below)
    assert (found == [text.strip()]) is (n < below or n <= 6)


def test_characters_count_as_words_where_a_script_has_no_spaces() -> None:
    assert pieces("油压机每天检查。阀门打开。停机。", 12, 0, 1) == ["油压机每天检查。", "阀门打开。停机。"]


def test_a_table_row_is_never_cut_and_a_long_one_stands_alone() -> None:
    row = "| one two three four. Five six | seven |"
    assert pieces(f"Before. It is.\n{row}\nAfter.", 3, 0, 1) == ["Before. It is.", row, "After."]


class Subjects:
    """Embeds a text by which of two subjects its words name; counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def identity(self) -> Mapping[str, Any]:
        return {"name": "subjects"}

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.calls += 1
        vectors = np.array([[text.count("oil") + 1e-3, text.count("soup") + 1e-3] for text in texts], np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    embed_queries = embed_documents


PROSE = "The oil is old. The oil is hot. Change the oil. The soup is hot. The soup is good. Eat the soup."


def test_the_cut_is_where_the_subject_changes() -> None:
    embedder = Subjects()
    found = Semantic(embedder, 80, 1000, 0).split([PROSE, "", "One sentence."])
    pieces = [PROSE[start:end] for start, end in found[0]]
    assert pieces == [
        "The oil is old. The oil is hot. Change the oil.",
        "The soup is hot. The soup is good. Eat the soup.",
    ]
    assert found[1:] == [[], [(0, 13)]]
    assert embedder.calls == 1


def test_a_long_run_is_cut_by_characters() -> None:
    (spans,) = Semantic(Subjects(), 100, 50, 0).split([PROSE])
    assert len(spans) > 1 and all(end - start <= 50 for start, end in spans)


SECTIONED = "# Press\n## Oil\nEvery year the oil is changed.\n## Valves\nRV1 opens.\n"


def test_a_piece_never_runs_over_a_heading() -> None:
    (spans,) = MarkdownSections(1000, 0).split([SECTIONED])
    assert [SECTIONED[start:end] for start, end in spans] == [
        "# Press\n## Oil\nEvery year the oil is changed.",
        "## Valves\nRV1 opens.",
    ]


def test_long_sections_are_cut_by_characters() -> None:
    (spans,) = MarkdownSections(30, 0).split([SECTIONED])
    assert len(spans) > 2 and all(end - start <= 30 for start, end in spans)


def test_sections_are_the_whole_text() -> None:
    spans = section_spans("before\n" + SECTIONED)
    assert [start for start, _ in spans] == [0, *(end for _, end in spans[:-1])]
    assert spans[-1][1] == len("before\n" + SECTIONED) and section_spans("") == []


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
OIL_TEXT = "The press is oiled.\n\nThe press is oiled.\n\nThe valve opens at 275 bar. The press is oiled."
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
    spans = spans_of(OIL_TEXT, name=name)
    assert isinstance(spans, list) and spans == sorted(spans)
    assert all(OIL_TEXT[start:end].strip() == OIL_TEXT[start:end] != "" for start, end in spans)
    held = {place for start, end in spans for place in range(start, end)}
    assert all(place in held or letter.isspace() for place, letter in enumerate(OIL_TEXT))


def test_equal_paragraphs_stand_in_their_own_places(folder: Path) -> None:
    assert spans_of(OIL_TEXT, name="mine:paragraphs") == [(0, 19), (21, 40), (42, len(OIL_TEXT))]


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
        ("The press", "returned str, not a list of pieces or spans"),
        (None, "returned NoneType, not"),
        ([], "returned no piece"),
    ],
)
def test_what_is_no_piece_of_the_text_is_a_reason(returned: Any, said: str) -> None:
    @dataclass(frozen=True)
    class Wrong:
        version: ClassVar[int] = 1

        def __call__(self, text: str) -> Any:
            return returned

    found = spans_of(OIL_TEXT, Wrong())
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


class CountsWords:
    """An embedder whose tokens are words, with two marks around each text; it reads 20."""

    most_tokens = 20

    def identity(self) -> Mapping[str, Any]:
        return {"provider": "counts"}

    def text_tokens(self, texts: Sequence[str], kind: str) -> list[int]:
        return [len(text.split()) + 2 for text in texts]


class Silent(CountsWords):
    """Counts nothing, also once it was loaded, as a model that looks tokens up in a table."""

    most_tokens = None

    def text_tokens(self, texts: Sequence[str], kind: str) -> list[int]:
        return [0] * len(texts)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return np.ones((len(texts), 1), np.float32)


TOKENS = CorpusConfig(chunk_tokens=18, chunk_size=100, chunk_overlap=25, parents="none")


@pytest.mark.parametrize("splitter", ["recursive", "markdown"])
def test_pieces_have_at_most_the_tokens_and_share_the_same_part(splitter: str) -> None:
    text = "\n\n".join(" ".join(f"w{number}" for number in range(n)) for n in (5, 70, 3)) + "\n| a | b |\n| - | - |"
    config = TOKENS.model_copy(update={"splitter": splitter})
    cut: Any = splitter_of(config, CountsWords())
    (spans,) = cut.split([text])
    assert all(len(text[start:end].split()) <= 16 for start, end in spans)
    assert max(len(text[start:end].split()) for start, end in spans) == 16
    assert text[spans[2][0] : spans[1][1]].split() == text[spans[1][0] : spans[1][1]].split()[-4:]
    assert {place for span in spans for place in range(*span)} >= {n for n, one in enumerate(text) if not one.isspace()}
    assert "length" not in splitter_of(CorpusConfig(), None).identity()
    assert cut.identity()["length"] == {"provider": "counts"} and (cut.size, cut.overlap) == (18, 4)


def test_more_tokens_than_the_model_reads_and_a_model_that_does_not_count_are_sentences(embedder: Any) -> None:
    with pytest.raises(ConfigError, match="chunk_tokens is 21, but the embedding model reads 20 tokens: set at most"):
        splitter_of(TOKENS.model_copy(update={"chunk_tokens": 21}), CountsWords()).split(["a b"])
    with pytest.raises(ConfigError, match="counts no tokens: set corpus.chunk_size in its place"):
        splitter_of(TOKENS, embedder).split(["a b"])
    with pytest.raises(ConfigError, match="counts no tokens"):
        splitter_of(TOKENS, Silent()).split(["a b"])


def test_the_packaged_model_cuts_by_its_tokens() -> None:
    embedder = shared.embedder("sentence_transformers:minilm")
    text = "Hydraulics: the relief valve RV-1 opens at 275 bar; re-tighten M12 bolts. " * 30
    (spans,) = splitter_of(TOKENS.model_copy(update={"chunk_tokens": 64}), embedder).split([text])
    counts = embedder.text_tokens([text[start:end] for start, end in spans], "document")
    assert max(counts) <= 64 and sum(counts) / len(counts) > 48
