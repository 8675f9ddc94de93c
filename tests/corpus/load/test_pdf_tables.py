from collections import Counter
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pymupdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from office_files import turned

from rag_lab.corpus.chunk_store import find_quote
from rag_lab.corpus.load.pymupdf_pdf import load_pdf, load_pdf_tables

ROWS = [("Part", "Torque, Nm", "Note"), ("Bolt M6", "9.5", "dry"), ("Bolt M8", "22", "oiled, see 4.2")]


def with_table(tmp_path: Path, degrees: int = 0, cropped: int = 0) -> Path:
    """A ruled table between two lines of prose, on a page that may lie on its side and be turned to look upright."""
    pdf = pymupdf.open()
    page = pdf.new_page()
    page.insert_text((60, 60), "Bolts are tightened crosswise.")
    draw_table(page, 80, ROWS)
    page.insert_text((60, 190), "After the table.")
    if degrees:
        pdf = turned(pdf, degrees)
    pdf[0].set_cropbox(pdf[0].mediabox + (cropped, cropped, 0, -2 * cropped))
    pdf.save(tmp_path / "a.pdf")
    return tmp_path / "a.pdf"


def draw_table(page: pymupdf.Page, top: float, rows: Sequence[Sequence[str]]) -> None:
    for y, row in enumerate(rows):
        for x, cell in enumerate(row):
            box = pymupdf.Rect(60 + 140 * x, top + 24 * y, 200 + 140 * x, top + 24 + 24 * y)
            page.draw_rect(box)
            page.insert_text((box.x0 + 6, box.y0 + 16), cell)


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


@pytest.mark.parametrize("cropped", [0, 20])
@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
def test_a_turned_or_cropped_page_has_the_same_tables(tmp_path: Path, degrees: int, cropped: int) -> None:
    upright = load_pdf_tables(with_table(tmp_path), "a.pdf")
    assert load_pdf_tables(with_table(tmp_path, degrees, cropped), "a.pdf") == upright


# Words of each cell; the last overflows its table, and not the page.
rows = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 8))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.one_of(st.integers(1, 12), st.tuples(rows, rows)), min_size=1, max_size=5))
def test_every_word_comes_once_also_where_it_sticks_out_of_its_table(
    tmp_path_factory: pytest.TempPathFactory, blocks: list[int | tuple[tuple[int, ...], ...]]
) -> None:
    pdf = pymupdf.open()
    page = pdf.new_page()
    page.insert_text((60, 40), "w0")
    numbers = count(1)

    def words(n_words: int) -> str:
        return " ".join(f"w{next(numbers)}" for _ in range(n_words))

    for place, block in enumerate(blocks):
        if isinstance(block, int):
            page.insert_text((60, 60 + 80 * place), words(block))
        else:
            draw_table(page, 60 + 80 * place, [[words(n_words) for n_words in row] for row in block])
    path = tmp_path_factory.mktemp("pdf") / "a.pdf"
    pdf.save(path)
    text = load_pdf_tables(path, "a.pdf").documents[0].text
    found = Counter(word for word in text.replace("|", " ").split() if word != "---")
    assert found == Counter(f"w{number}" for number in range(next(numbers)))


def test_text_beyond_a_tables_border_stands_below_it(tmp_path: Path) -> None:
    pdf = pymupdf.open()
    page = pdf.new_page()
    draw_table(page, 80, [("Part", "Note"), ("Bolt", "tighten crosswise and then mark with paint")])
    pdf.save(tmp_path / "a.pdf")
    table, rest = load_pdf_tables(tmp_path / "a.pdf", "a.pdf").documents[0].text.split("\n\n")
    assert table.startswith("| Part | Note |")
    assert f"{table[:-2]} {rest}".endswith("| Bolt | tighten crosswise and then mark with paint")


def drawing(tmp_path: Path, commands: list[str]) -> Path:
    """A page of prose and one with strokes."""
    pdf = pymupdf.open()
    for text in ("Prose.", "Drawing."):
        pdf.new_page().insert_text((72, 40), text)
    (xref,) = pdf[1].get_contents()
    pdf.update_stream(xref, pdf.xref_stream(xref) + "\n".join(["q 1 w", *commands, "Q"]).encode())
    pdf.save(tmp_path / "a.pdf")
    return tmp_path / "a.pdf"


HATCHES = [f"{50 + n % 60 * 8} {50 + n // 60 * 9} m {54 + n % 60 * 8} {50 + n // 60 * 9} l S" for n in range(4200)]
GRAPH_PAPER = [f"{50 + 5 * n} 50 m {50 + 5 * n} 750 l S 50 {50 + 7 * n} m 550 {50 + 7 * n} l S" for n in range(100)]


@pytest.mark.parametrize("commands", [HATCHES, GRAPH_PAPER])
def test_a_drawing_is_not_searched_for_tables_and_that_is_said(
    tmp_path: Path, commands: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[int] = []
    find_tables = pymupdf.Page.find_tables

    def counted(page: pymupdf.Page, **options: object) -> object:
        searched.append(page.number)
        return find_tables(page, **options)

    monkeypatch.setattr(pymupdf.Page, "find_tables", counted)
    loaded = load_pdf_tables(drawing(tmp_path, commands), "a.pdf")
    assert [document.text for document in loaded.documents] == ["Prose.", "Drawing."]
    assert loaded.warnings == ("page 2 holds more drawn lines than tables have: read without looking for tables.",)
    assert searched == [0]
    assert not load_pdf_tables(drawing(tmp_path, commands[:60]), "a.pdf").warnings


def test_no_model_of_the_pages_layout_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[pymupdf.Page] = []
    monkeypatch.setattr(pymupdf.Page, "get_layout", lambda page, **_: asked.append(page))
    assert "| Bolt M6 |" in load_pdf_tables(with_table(tmp_path), "a.pdf").documents[0].text
    assert not asked
