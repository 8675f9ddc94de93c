"""Files cut as one text and files left out, from the folder to what is found and cited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pymupdf
import pytest

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.index.corpus_index import CorpusIndex, open_index
from rag_lab.corpus.index.found_chunks import locate_all
from rag_lab.evaluation.measures.coverage import covers
from rag_lab.records import Evidence, Question

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
