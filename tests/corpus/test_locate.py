"""Files cut as one text and files left out, from the folder to what is found and cited."""

import re
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.corpus.chunk_store import ChunkStore, locate_evidence, write_chunks
from rag_lab.corpus.chunks import split
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import CorpusIndex, locate_all, open_index
from rag_lab.corpus.normalize import find_quote
from rag_lab.evaluation.retrieval import covers
from rag_lab.records import Document, Evidence, Question

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


PAGES = ("The pump P-1 is started by hand. Its valve opens at", "275 bar and closes at 240 bar.", "Alarm A7: burner.")
WHOLE = CorpusConfig(pdf_unit="file", parents="none", chunk_size=90, chunk_overlap=0)


@pytest.fixture
def manual(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    pdf = pymupdf.open()
    for text in PAGES:
        pdf.new_page().insert_text((72, 72), text)
    pdf.save(folder / "manual.pdf")
    (folder / "notes.txt").write_text("Night shift: the oven tripped.")
    return folder


def opened(folder: Path, tmp_path: Path, embedder: Any, config: CorpusConfig) -> CorpusIndex:
    return open_index(folder, config, embedder, home=tmp_path / "home")


def test_a_piece_runs_over_the_end_of_a_page_and_has_the_page_on_which_it_begins(
    manual: Path, tmp_path: Path, embedder: Any
) -> None:
    by_page = opened(manual, tmp_path, embedder, WHOLE.model_copy(update={"pdf_unit": "page"}))
    whole = opened(manual, tmp_path, embedder, WHOLE)
    assert [(child.page, child.text) for child in by_page.chunks.children()][:3] == list(
        zip((1, 2, 3), PAGES, strict=True)
    )
    first, second, notes = whole.chunks.children()
    assert (first.page, first.text) == (1, f"{PAGES[0]}\n{PAGES[1]}") and second.page == 3 and notes.page is None
    assert by_page.digest != whole.digest


def test_what_is_found_can_be_read_and_covers_the_evidence_of_any_page_it_runs_over(
    manual: Path, tmp_path: Path, embedder: Any
) -> None:
    index = opened(manual, tmp_path, embedder, WHOLE)
    (hits,) = index.search(embedder.embed_queries(["valve opens at 275 bar"]), 1)
    assert index.text(hits[0]).endswith("closes at 240 bar.") and hits[0].page == 1
    evidence = (
        Evidence("manual.pdf", 2, "closes at 240"),
        Evidence("manual.pdf", 1, "opens at 275 bar"),
        Evidence("manual.pdf", 2),
        Evidence("manual.pdf", 3, "Alarm A7"),
    )
    (question,), problems = locate_all(index, [Question("q", "?", evidence=evidence)])
    assert problems == []
    assert [covers(hits[0], item) for item in question.evidence] == [True, True, True, False]
    assert question.evidence[2].context == PAGES[1]


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (Evidence("manual.pdf", 3, "opens at 275 bar"), "does not stand on page 3"),
        (Evidence("manual.pdf", 2, "The pump P-1"), "does not stand on page 2"),
        (Evidence("manual.pdf", 4), "page 4 was not read: it does not exist or holds no text (last page with text: 3)"),
    ],
)
def test_a_label_that_is_wrong_is_said_as_it_is_page_by_page(
    manual: Path, tmp_path: Path, embedder: Any, evidence: Evidence, reason: str
) -> None:
    for config in (WHOLE, WHOLE.model_copy(update={"pdf_unit": "page"})):
        assert reason in opened(manual, tmp_path, embedder, config).locate(evidence)[1]


def test_a_document_is_the_whole_file_and_has_no_page(manual: Path, tmp_path: Path, embedder: Any) -> None:
    index = opened(manual, tmp_path, embedder, WHOLE)
    (hits,) = index.search(embedder.embed_queries(["Alarm A7: burner"]), 1, level="document")
    assert hits[0].page is None and index.text(hits[0]) == "\n".join(PAGES)


SKIP = CorpusConfig(duplicates="skip")


def test_of_files_that_read_the_same_the_first_is_indexed_and_stands_for_the_others(
    corpus: Path, tmp_path: Path, embedder: Any
) -> None:
    (corpus / "press/oil_again.txt").write_text("Change the hydraulic oil every 4,000 hours.\r\n")
    index = opened(corpus, tmp_path, embedder, SKIP)
    assert [file.source for file in index.files] == ["canteen.txt", "press/oil.txt", "press/relief_valve.md"]
    (said,) = index.problems
    assert said.path.endswith("oil_again.txt") and "the same as press/oil.txt, which stands in its place" in said.reason
    label = Evidence("press/oil_again.txt", None, "4,000 hours")
    (question,), problems = locate_all(index, [Question("q", "?", evidence=(label,))])
    (hits,) = index.search(embedder.embed_queries(["hydraulic oil hours"]), 1)
    assert problems == [] and covers(hits[0], question.evidence[0])


def test_kept_they_are_all_indexed(corpus: Path, tmp_path: Path, embedder: Any) -> None:
    (corpus / "press/oil_again.txt").write_text("Change the hydraulic oil every 4,000 hours.\r\n")
    kept, skipped = (opened(corpus, tmp_path, embedder, config) for config in (CorpusConfig(), SKIP))
    assert (len(kept.files), len(skipped.files)) == (4, 3) and kept.digest != skipped.digest


def test_a_file_stands_in_nobodys_place_who_may_not_see_it(corpus: Path, tmp_path: Path, embedder: Any) -> None:
    (corpus / "a_copy.txt").write_text("Change the hydraulic oil every 4,000 hours. ")
    (tmp_path / "attributes.yaml").write_text("- {files: a_copy.txt, permissions: [staff]}\n")
    (tmp_path / "questions.jsonl").write_text("")
    index = opened(corpus, tmp_path, embedder, SKIP)
    assert {"a_copy.txt", "press/oil.txt"} <= {file.source for file in index.files}
