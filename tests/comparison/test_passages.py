from dataclasses import replace
from pathlib import Path

import pytest
from run_folder_fixture import build_run

from rag_lab.comparison.passages import Piece, opening, pieces
from rag_lab.records import Evidence, Hit, Question
from rag_lab.report.shown_comparison import compare
from rag_lab.runs.run_folder import PASSAGES_FILE, write_json

DOCUMENT = "Check the seal. Tighten the ram bolts to 85 Nm, crosswise. Then the guard."
START = DOCUMENT.index("85 Nm")
EVIDENCE = Evidence("a.md", None, "85 Nm", START, START + len("85 Nm"))


def hit(start: int, end: int) -> Hit:
    return Hit("a.md#0", "a.md#0/0", "a.md", None, start, end, 1.0)


def asking(*evidence: Evidence) -> Question:
    return Question("q", "How tight?", evidence=evidence)


def shown(parts: tuple[Piece, ...]) -> str:
    return "".join(f"[{part.text}]" if part.marked else part.text for part in parts)


def test_the_quote_is_marked_where_the_document_has_it() -> None:
    first, last = 16, 58
    parts = pieces(hit(first, last), DOCUMENT[first:last], asking(EVIDENCE))
    assert shown(parts) == "Tighten the ram bolts to [85 Nm], crosswise."


def test_of_a_quote_that_two_passages_share_each_marks_its_part() -> None:
    cut = START + 2
    ask = asking(EVIDENCE)
    assert shown(pieces(hit(0, cut), DOCUMENT[:cut], ask)).endswith("bolts to [85]")
    assert shown(pieces(hit(cut, len(DOCUMENT)), DOCUMENT[cut:], ask)).startswith("[ Nm], crosswise")


def test_quotes_that_overlap_are_one_and_the_order_of_the_evidence_does_not_matter() -> None:
    later = replace(EVIDENCE, start=START + 3, end=START + 16)
    whole = hit(0, len(DOCUMENT))
    texts = {shown(pieces(whole, DOCUMENT, asking(*some))) for some in ((EVIDENCE, later), (later, EVIDENCE))}
    assert texts == {DOCUMENT.replace("85 Nm, crosswise", "[85 Nm, crosswise]")}


@pytest.mark.parametrize(
    "evidence",
    [
        Evidence("a.md"),  # the whole page, no quote
        Evidence("a.md", None, "85 Nm"),  # not located
        replace(EVIDENCE, source="b.md"),
    ],
)
def test_without_a_located_quote_nothing_is_marked(evidence: Evidence) -> None:
    assert pieces(hit(0, len(DOCUMENT)), DOCUMENT, asking(evidence)) == (Piece(DOCUMENT),)


def test_a_text_that_is_not_the_document_s_is_not_marked_by_its_places() -> None:
    assert pieces(hit(0, len(DOCUMENT)), "A summary.", asking(EVIDENCE)) == (Piece("A summary."),)
    assert pieces(hit(0, 0), "", asking(EVIDENCE)) == ()


def test_an_opening_is_one_line_that_shows_the_evidence_wherever_it_stands() -> None:
    text = "word\n\n" * 200 + DOCUMENT + " end" * 200
    first = text.index("85 Nm")
    parts = pieces(hit(0, len(text)), text, asking(replace(EVIDENCE, start=first, end=first + 5)))
    told = opening(parts, 120)
    assert "[85 Nm]" in shown(told) and "\n" not in shown(told)
    assert told[0].text == "… " and told[-1].text == " …"
    assert sum(len(part.text) for part in told) == 120 + 4


def test_a_short_text_is_its_own_opening() -> None:
    assert shown(opening((Piece("Two\nlines."),))) == "Two lines."
    assert opening(()) == ()
    assert shown(opening((Piece("x" * 30),), 20)) == "x" * 20 + " …"


def test_a_trace_of_a_run_shows_the_texts_that_the_run_kept_and_those_that_other_variants_read(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", 6, 3)
    before = compare(run.path).traces["baseline"][1]
    unread = next(hit for hit in before.ranked if not before.text(hit))
    write_json(run.variant_dir("baseline") / PASSAGES_FILE, {unread.parent_id: "Kept <b>words</b>."})
    traces = compare(run.path).traces
    trace = traces["baseline"][1]
    assert trace.text(unread) == "Kept <b>words</b>."
    assert "Kept &lt;b&gt;words&lt;/b&gt;." in trace._repr_html_()
    read = {passage.parent_id for some in traces.values() for one in some for passage in one.passages}
    assert all(trace.text(hit) for hit in trace.ranked if hit.parent_id in read)


def test_a_run_that_kept_no_texts_is_compared_without(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", 3, 2)
    (trace, *_) = compare(run.path).traces["baseline"]
    assert len(trace.texts) > 0 and "no such place" not in trace.texts
