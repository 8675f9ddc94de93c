from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.index.chunk_store import ChunkStore, write_chunks
from rag_lab.corpus.index.locate import find_quote, locate_evidence
from rag_lab.corpus.split.chunks import split
from rag_lab.records import Document, Evidence

PAGE_2 = "3 Hydraulics\n\nMain relief valve RV1 opens  275 bar\nPilot pressure  32 bar"
LONG = " ".join(f"Sentence {number} says something." for number in range(40))


@pytest.fixture
def store(tmp_path: Path) -> ChunkStore:
    documents = [
        Document("m.pdf", 1, "Cover of the manual"),
        Document("m.pdf", 2, PAGE_2),
        Document("notes.txt", None, LONG),
    ]
    write_chunks(tmp_path / "c.sqlite", documents, split(documents, CorpusConfig(parent_size=300)))
    return ChunkStore(tmp_path / "c.sqlite")


def test_a_quote_is_found_across_line_breaks_at_its_place_in_the_text(store: ChunkStore) -> None:
    found, reason = locate_evidence(store, Evidence("m.pdf", 2, "RV1 opens 275 bar Pilot"))
    assert reason == ""
    assert found.start is not None and PAGE_2[found.start : found.end] == "RV1 opens  275 bar\nPilot"
    assert found.context == PAGE_2


def test_a_quote_without_a_page_is_given_its_page(store: ChunkStore) -> None:
    assert locate_evidence(store, Evidence("m.pdf", None, "Pilot pressure"))[0].page == 2


def test_a_page_alone_is_given_the_pages_parent(store: ChunkStore) -> None:
    found, reason = locate_evidence(store, Evidence("m.pdf", 2))
    assert (found.start, found.context, reason) == (None, PAGE_2, "")


@pytest.mark.parametrize("evidence", [Evidence("m.pdf"), Evidence("notes.txt")])
def test_which_passage_of_a_file_is_meant_is_not_guessed(store: ChunkStore, evidence: Evidence) -> None:
    assert locate_evidence(store, evidence) == (evidence, "")  # the first parent may be a cover page


def test_a_file_of_one_passage_is_given_it(tmp_path: Path) -> None:
    documents = [Document("note.txt", None, PAGE_2)]
    write_chunks(tmp_path / "c.sqlite", documents, split(documents, CorpusConfig()))
    assert locate_evidence(ChunkStore(tmp_path / "c.sqlite"), Evidence("note.txt"))[0].context == PAGE_2


def test_a_quote_over_two_parents_is_given_both(store: ChunkStore) -> None:
    first, second, *_ = store.parents("notes.txt", None)
    quote = LONG[first.end - 20 : second.start + 20]
    found, _ = locate_evidence(store, Evidence("notes.txt", None, quote))
    assert found.context == LONG[first.start : second.end]


def test_parents_of_numbered_pages_are_none_of_the_text_beside_them(tmp_path: Path) -> None:
    documents = [Document("m.txt", None, "Cover"), Document("m.txt", 1, "Page one")]
    write_chunks(tmp_path / "c.sqlite", documents, split(documents, CorpusConfig()))
    store = ChunkStore(tmp_path / "c.sqlite")
    assert [[parent.text for parent in store.parents("m.txt", page)] for page in (None, 1)] == [["Cover"], ["Page one"]]


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (Evidence("missing.pdf", 1), "no such file"),
        (Evidence("m.pdf", 9), "page 9 was not read"),
        (Evidence("notes.txt", 1), "the file has no pages"),
        (Evidence("m.pdf", 1, "RV1"), "the quote 'RV1' does not stand on page 1"),
        (Evidence("notes.txt", None, "sentence 1 says"), "does not stand on the file"),
    ],
)
def test_what_is_not_there_is_returned_as_it_was_with_the_reason(
    store: ChunkStore, evidence: Evidence, reason: str
) -> None:
    found, said = locate_evidence(store, evidence)
    assert found == evidence
    assert reason in said


@settings(max_examples=100, deadline=None)
@given(st.text("ab.(*", min_size=1, max_size=40), st.data())
def test_any_part_is_found_wherever_whitespace_is_put(letters: str, data: st.DataObject) -> None:
    def spread(part: str) -> str:
        return "".join(letter + data.draw(st.sampled_from(["", " ", "\n", "\u00a0", "\u00ad"])) for letter in part)

    start = data.draw(st.integers(0, len(letters) - 1))
    end = data.draw(st.integers(start + 1, len(letters)))
    text, quote = spread(letters), spread(letters[start:end])
    span = find_quote(text, quote)
    assert span is not None
    found = re.sub(r"[\s\u00ad]", "", text[span[0] : span[1]])
    assert found == letters[start:end]
    assert len(re.sub(r"[\s\u00ad]", "", text[: span[0]])) == letters.find(letters[start:end])


def test_a_blank_quote_stands_nowhere() -> None:
    assert find_quote("text", " \n") is None
