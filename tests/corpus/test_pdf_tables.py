from __future__ import annotations

from pathlib import Path

import pymupdf

from rag_lab.corpus.locate import find_quote
from rag_lab.corpus.pdf import load_pdf
from rag_lab.corpus.pdf_tables import load_pdf_tables

ROWS = [("Part", "Torque, Nm", "Note"), ("Bolt M6", "9.5", "dry"), ("Bolt M8", "22", "oiled, see 4.2")]


def with_table(tmp_path: Path) -> Path:
    """A page with a ruled table between two lines of prose."""
    pdf = pymupdf.open()
    page = pdf.new_page()
    page.insert_text((60, 60), "Bolts are tightened crosswise.")
    for y, row in enumerate(ROWS):
        for x, cell in enumerate(row):
            box = pymupdf.Rect(60 + 140 * x, 80 + 24 * y, 200 + 140 * x, 104 + 24 * y)
            page.draw_rect(box)
            page.insert_text((box.x0 + 6, box.y0 + 16), cell)
    page.insert_text((60, 190), "After the table.")
    pdf.save(tmp_path / "a.pdf")
    return tmp_path / "a.pdf"


def test_a_ruled_table_stands_in_its_place_as_markdown(tmp_path: Path) -> None:
    (document,) = load_pdf_tables(with_table(tmp_path), "a.pdf").documents
    assert document.text.split("\n\n") == [
        "Bolts are tightened crosswise.",
        "| Part | Torque, Nm | Note |\n| --- | --- | --- |\n| Bolt M6 | 9.5 | dry |\n| Bolt M8 | 22 | oiled, see 4.2 |",
        "After the table.",
    ]


def test_a_quote_of_a_row_is_found_in_either_reading(tmp_path: Path) -> None:
    path = with_table(tmp_path)
    for load in (load_pdf, load_pdf_tables):
        text = load(path, "a.pdf").documents[0].text
        start, end = find_quote(text, "Bolt M8  22  oiled, see 4.2") or (0, 0)
        assert text[start:end].startswith("Bolt M8") and text[start:end].endswith("see 4.2")


def test_a_page_without_tables_is_read_as_ever(tmp_path: Path) -> None:
    pdf = pymupdf.open()
    pdf.new_page().insert_text((72, 72), "First line\nsecond line")
    pdf.save(tmp_path / "a.pdf")
    assert load_pdf_tables(tmp_path / "a.pdf", "a.pdf") == load_pdf(tmp_path / "a.pdf", "a.pdf")
