import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_text_splitters import RecursiveCharacterTextSplitter

from rag_lab.corpus.chunks import Chunks, split
from rag_lab.corpus.config import CorpusConfig
from rag_lab.records import Document

words = st.lists(st.sampled_from(["a", "aa", "ab", " ", "  ", "\n", "\n\n", "pump", "valve 12."]), max_size=400)
repetitive = words.map("".join)
anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=600)
texts = st.one_of(repetitive, anything)
sizes = st.tuples(st.integers(50, 120), st.integers(0, 49), st.integers(200, 500))


def cut(text: str, size: int, overlap: int, parent: int, page: int | None = None) -> tuple[Document, Chunks]:
    document = Document("dir/file.txt", page, text)
    return document, split([document], CorpusConfig(chunk_size=size, chunk_overlap=overlap, parent_size=parent))


@settings(max_examples=150, deadline=None)
@given(texts, sizes, st.sampled_from([None, 3]))
@example("a" * 700, (50, 49, 200), None)
@example("ab " * 300, (50, 30, 200), None)
@example(("x" * 60 + "\n") * 20, (50, 40, 300), 3)
def test_chunks_are_exact_spans_that_lie_in_their_parents_and_cover_the_text(
    text: str, numbers: tuple[int, int, int], page: int | None
) -> None:
    document, chunks = cut(text, *numbers, page=page)
    by_id = {parent.chunk_id: parent for parent in chunks.parents}
    assert len(by_id) == len(chunks.parents)
    assert len({child.chunk_id for child in chunks.children}) == len(chunks.children)
    in_parents, in_children = [0] * len(text), [0] * len(text)
    for parent in chunks.parents:
        assert parent.text == document.text[parent.start : parent.end]
        assert parent.page is not None or len(parent.text) <= numbers[2]
        for position in range(parent.start, parent.end):
            in_parents[position] += 1
    for child in chunks.children:
        parent = by_id[child.parent_id]
        assert child.text == document.text[child.start : child.end]
        assert parent.start <= child.start < child.end <= parent.end
        assert len(child.text) <= numbers[0]
        for position in range(child.start, child.end):
            in_children[position] += 1
    solid = [position for position, letter in enumerate(text) if not letter.isspace()]
    assert all(in_parents[position] == 1 for position in solid)
    assert all(in_children[position] >= 1 for position in solid)


@settings(max_examples=60, deadline=None)
@given(repetitive, sizes)
def test_the_texts_are_those_of_the_named_splitter(text: str, numbers: tuple[int, int, int]) -> None:
    _, chunks = cut(text, *numbers, page=1)
    splitter = RecursiveCharacterTextSplitter(chunk_size=numbers[0], chunk_overlap=numbers[1])
    expected = [piece for parent in chunks.parents for piece in splitter.split_text(parent.text)]
    assert [child.text for child in chunks.children] == expected


def test_neighbours_overlap_no_more_than_asked() -> None:
    _, chunks = cut("Check the relief valve. " * 60, 100, 30, 5000)
    gaps = [before.end - after.start for before, after in zip(chunks.children, chunks.children[1:], strict=False)]
    assert max(gaps) <= 30
    assert all(after.start > before.start for before, after in zip(chunks.children, chunks.children[1:], strict=False))
    assert chunks.children[-1].end == chunks.parents[0].end


def test_ids_are_readable_and_the_same_every_time() -> None:
    _, chunks = cut("word " * 100, 100, 0, 300)
    assert [parent.chunk_id for parent in chunks.parents] == ["dir/file.txt#0-299", "dir/file.txt#300-499"]
    assert chunks.children[0].chunk_id == "dir/file.txt#0-299/0"
    assert chunks == cut("word " * 100, 100, 0, 300)[1]


def test_a_page_is_one_parent_whatever_its_length() -> None:
    _, chunks = cut("\n word " * 1000, 100, 0, 200, page=7)
    (parent,) = chunks.parents
    assert (parent.chunk_id, parent.page, parent.start) == ("dir/file.txt#p7", 7, 2)


@pytest.mark.parametrize("page", [None, 1])
def test_blank_text_has_no_chunks(page: int | None) -> None:
    assert cut(" \n\n ", 50, 0, 200, page)[1] == Chunks((), ())
