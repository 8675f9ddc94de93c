"""Every splitter keeps to the contract of splitters, and to more under every kind of parent."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_text_splitters import RecursiveCharacterTextSplitter

from rag_lab.corpus.chunks import Chunks, cut_identity, split
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.spans import row_spans
from rag_lab.corpus.splitters import Splitter, splitter_of
from rag_lab.errors import ConfigError
from rag_lab.models.protocols import Vectors
from rag_lab.records import Document
from rag_lab.testing import SplitterContract

SPLITTERS = ["recursive", "sentences", "markdown", "semantic"]
PARENTS = ["page", "section", "fixed", "neighbours", "none"]
PARTITIONS = ["page", "section", "fixed"]
ROW = "| a cell of some length | 275 bar, and what else there is to say of it | RV1 |\n"
blocks = st.sampled_from(
    [
        "pump ",
        "The valve opens. ",
        "aa",
        " ",
        "\n",
        "\n\n",
        "# Oil\n",
        "## Valves\n",
        "| a | b |\n",
        ROW,
        ROW * 3,
        "油压。",
        "?! ",
    ]
)
texts = st.one_of(
    st.lists(blocks, max_size=60).map("".join), st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
)


class ByHash:
    """Any two different texts are far apart, in a way that is the same every time."""

    def identity(self) -> Mapping[str, Any]:
        return {"name": "by hash"}

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) for text in texts]
        vectors = np.stack([np.random.default_rng(seed).normal(size=8) for seed in seeds]).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    embed_queries = embed_documents


def config_of(splitter: str, parents: str, **changes: Any) -> CorpusConfig:
    sizes = {"chunk_size": 60, "chunk_overlap": 15, "chunk_words": 8, "overlap_words": 3, "parent_size": 200}
    quick = {"breakpoint_percentile": 60, "whole_below": 0}
    return CorpusConfig(splitter=splitter, parents=parents, **{**sizes, **quick, **changes})


def cut(text: str, config: CorpusConfig, page: int | None = None) -> Chunks:
    return split([Document("a.md", page, text, namespace="hr", permissions=("staff",))], config, ByHash())


def covered(text: str, spans: Sequence[tuple[int, int]]) -> bool:
    seen = np.zeros(len(text) + 1, bool)
    for start, end in spans:
        seen[start:end] = True
    return all(seen[position] or letter.isspace() for position, letter in enumerate(text))


class TestSplitters(SplitterContract):
    @pytest.fixture(autouse=True, params=SPLITTERS)
    def _each(self, request: pytest.FixtureRequest) -> None:
        self.name = request.param

    def make(self) -> Splitter:
        return splitter_of(config_of(self.name, "page"), ByHash())

    splitter = make


class TestPieces(SplitterContract):
    def make(self) -> Callable[[str], list[str]]:
        return lambda text: [piece for piece in text.split("\n\n") if piece.strip()]


@pytest.mark.parametrize("parents", PARENTS)
@pytest.mark.parametrize("splitter", SPLITTERS)
@settings(max_examples=25, deadline=None)
@given(text=texts, page=st.sampled_from([None, 2]), min_pieces=st.sampled_from([1, 3]))
@example(text=ROW * 6, page=None, min_pieces=3)
@example(text=f"Before. {'word ' * 40}\n{ROW}after", page=None, min_pieces=1)
@example(text="One. One. One. One. " * 20, page=2, min_pieces=1)
@example(text="油压。pump ", page=None, min_pieces=3)  # a word over the end of a sentence
def test_children_are_spans_that_cover_the_text_lie_in_their_parent_and_cut_no_row(
    splitter: str, parents: str, text: str, page: int | None, min_pieces: int
) -> None:
    chunks = cut(text, config_of(splitter, parents, min_pieces=min_pieces), page)
    by_id = {parent.chunk_id: parent for parent in chunks.parents}
    assert len(by_id) == len(chunks.parents)
    assert len({child.chunk_id for child in chunks.children}) == len(chunks.children)
    inside_rows = {place for start, end in row_spans(text) for place in range(start + 1, end)}
    for chunk in (*chunks.parents, *chunks.children):
        assert chunk.text == text[chunk.start : chunk.end] and chunk.text.strip() == chunk.text != ""
        assert not {chunk.start, chunk.end} & inside_rows
        assert (chunk.namespace, chunk.permissions, chunk.page) == ("hr", ("staff",), page)
    for child in chunks.children:
        parent = by_id[child.parent_id]
        assert parent.start <= child.start < child.end <= parent.end
        assert child.chunk_id.rpartition("/")[0] == parent.chunk_id
    assert {child.parent_id for child in chunks.children} == set(by_id)
    assert covered(text, [(child.start, child.end) for child in chunks.children])


@pytest.mark.parametrize("parents", PARTITIONS)
@settings(max_examples=25, deadline=None)
@given(text=texts, page=st.sampled_from([None, 2]))
def test_pages_sections_and_pieces_do_not_overlap(parents: str, text: str, page: int | None) -> None:
    found = cut(text, config_of("recursive", parents), page).parents
    assert all(before.end <= after.start for before, after in zip(found, found[1:], strict=False))


@pytest.mark.parametrize("splitter", ["recursive", "markdown", "semantic"])
@settings(max_examples=25, deadline=None)
@given(text=texts)
@example(text=f"Really?! {ROW}# Oil\n")  # the end of a line that by itself would be a row
def test_no_piece_is_longer_than_its_size_but_a_row(splitter: str, text: str) -> None:
    rows = {text[start:end] for start, end in row_spans(text)}
    assert all(len(child.text) <= 60 or child.text in rows for child in cut(text, config_of(splitter, "page")).children)


def test_neighbours_are_the_children_around_the_hit() -> None:
    text = "".join(f"Sentence number {n} stands here. " for n in range(9))
    config = config_of("sentences", "neighbours", chunk_words=5, overlap_words=0, neighbours=2)
    chunks = cut(text, config)
    by_id = {parent.chunk_id: parent for parent in chunks.parents}
    assert len(chunks.children) == 9
    fourth = chunks.children[4]
    assert by_id[fourth.parent_id].text == " ".join(child.text for child in chunks.children[2:7])
    first = chunks.children[0]
    assert by_id[first.parent_id].text == " ".join(child.text for child in chunks.children[:3])


def test_without_parents_a_child_is_its_own() -> None:
    chunks = cut("One sentence. " * 30, config_of("sentences", "none"))
    assert [(p.start, p.end) for p in chunks.parents] == [(c.start, c.end) for c in chunks.children]


def test_sections_are_parents_and_their_path_is_kept() -> None:
    text = "Preface.\n\n# Press\n\n## Oil\n\nEvery year.\n\n## Valves\n\n275 bar.\n\n# Oven\n\nHot."
    chunks = cut(text, config_of("markdown", "section"))
    assert [parent.section for parent in chunks.parents] == ["", "Press", "Press > Valves", "Oven"]
    assert chunks.parents[1].text == "# Press\n\n## Oil\n\nEvery year."
    assert cut(text, config_of("recursive", "page")).children[0].section == ""


def test_a_sheet_has_its_name_as_section_and_is_cut_into_parents_between_rows() -> None:
    text = "# Prices\n\n" + "".join(f"| Part {n} | {n} EUR |\n" for n in range(40))
    chunks = split([Document("a.xlsx", 2, text, section="Prices")], config_of("recursive", "page"), ByHash())
    assert len(chunks.parents) > 3 and {chunk.section for chunk in chunks.parents + chunks.children} == {"Prices"}
    assert chunks.parents[1].chunk_id.startswith("a.xlsx#p2:")


def test_the_identity_follows_what_cuts_and_nothing_else() -> None:
    def identity(splitter: str, **changes: Any) -> Mapping[str, Any]:
        config = config_of(splitter, "page", **changes)
        return cut_identity(config, splitter_of(config, ByHash()))

    assert identity("recursive") == identity("recursive", chunk_words=50, neighbours=3)
    assert identity("recursive") != identity("recursive", chunk_size=70)
    assert identity("recursive") != identity("markdown")
    assert identity("sentences") != identity("sentences", overlap_words=1)
    assert "by hash" in str(identity("semantic")) and "by hash" not in str(identity("markdown"))


def test_the_semantic_splitter_needs_an_embedder() -> None:
    with pytest.raises(ConfigError, match="needs an embedding model"):
        split([Document("a", None, "text")], config_of("semantic", "page"))


words = st.lists(st.sampled_from(["a", "aa", "ab", " ", "  ", "\n", "\n\n", "pump", "valve 12."]), max_size=400)
repetitive = words.map("".join)
anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=600)
document_texts = st.one_of(repetitive, anything)
sizes = st.tuples(st.integers(50, 120), st.integers(0, 49), st.integers(200, 500))


def cut_document(text: str, size: int, overlap: int, parent: int, page: int | None = None) -> tuple[Document, Chunks]:
    document = Document("dir/file.txt", page, text)
    return document, split([document], CorpusConfig(chunk_size=size, chunk_overlap=overlap, parent_size=parent))


@settings(max_examples=150, deadline=None)
@given(document_texts, sizes, st.sampled_from([None, 3]))
@example("a" * 700, (50, 49, 200), None)
@example("ab " * 300, (50, 30, 200), None)
@example(("x" * 60 + "\n") * 20, (50, 40, 300), 3)
def test_chunks_are_exact_spans_that_lie_in_their_parents_and_cover_the_text(
    text: str, numbers: tuple[int, int, int], page: int | None
) -> None:
    document, chunks = cut_document(text, *numbers, page=page)
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
    _, chunks = cut_document(text, *numbers, page=1)
    splitter = RecursiveCharacterTextSplitter(chunk_size=numbers[0], chunk_overlap=numbers[1])
    expected = [piece for parent in chunks.parents for piece in splitter.split_text(parent.text)]
    assert [child.text for child in chunks.children] == expected


def test_neighbours_overlap_no_more_than_asked() -> None:
    _, chunks = cut_document("Check the relief valve. " * 60, 100, 30, 5000)
    gaps = [before.end - after.start for before, after in zip(chunks.children, chunks.children[1:], strict=False)]
    assert max(gaps) <= 30
    assert all(after.start > before.start for before, after in zip(chunks.children, chunks.children[1:], strict=False))
    assert chunks.children[-1].end == chunks.parents[0].end


def test_ids_are_readable_and_the_same_every_time() -> None:
    _, chunks = cut_document("word " * 100, 100, 0, 300)
    assert [parent.chunk_id for parent in chunks.parents] == ["dir/file.txt#0-299", "dir/file.txt#300-499"]
    assert chunks.children[0].chunk_id == "dir/file.txt#0-299/0"
    assert chunks == cut_document("word " * 100, 100, 0, 300)[1]


def test_a_page_is_one_parent_whatever_its_length() -> None:
    _, chunks = cut_document("\n word " * 1000, 100, 0, 200, page=7)
    (parent,) = chunks.parents
    assert (parent.chunk_id, parent.page, parent.start) == ("dir/file.txt#p7", 7, 2)


@pytest.mark.parametrize("page", [None, 1])
def test_blank_text_has_no_chunks(page: int | None) -> None:
    assert cut_document(" \n\n ", 50, 0, 200, page)[1] == Chunks((), ())
