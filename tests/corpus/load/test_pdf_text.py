from pathlib import Path

import pymupdf
import pytest
from office_files import turned

from rag_lab.corpus.load.loader import Loader, LoadError
from rag_lab.corpus.load.pdfium import load_pdfium
from rag_lab.corpus.load.pymupdf_pdf import load_pdf, load_pdf_tables

A4 = pymupdf.paper_rect("a4")


@pytest.fixture(params=[load_pdf, load_pdf_tables, load_pdfium], ids=["text", "tables", "pdfium"])
def load(request: pytest.FixtureRequest) -> Loader:
    """Every reader that asks no model keeps what this file says."""
    reader: Loader = request.param
    return reader


def save(pdf: pymupdf.Document, tmp_path: Path, **options: object) -> Path:
    path = tmp_path / "file.pdf"
    pdf.save(path, **options)
    return path


def with_pages(*texts: str) -> pymupdf.Document:
    pdf = pymupdf.open()
    for text in texts:
        pdf.new_page().insert_text((72, 72), text)
    return pdf


def add_image_page(pdf: pymupdf.Document) -> None:
    pixels = pymupdf.Pixmap(pymupdf.csRGB, pymupdf.IRect(0, 0, 8, 8), False)
    pixels.clear_with(90)
    pdf.new_page().insert_image(A4, pixmap=pixels)


def test_each_page_with_text_is_a_document_counted_from_one(load: Loader, tmp_path: Path) -> None:
    pdf = with_pages("First page\nmore", "", "Third page")
    loaded = load(save(pdf, tmp_path), "m/file.pdf")
    assert [(document.source, document.page) for document in loaded.documents] == [("m/file.pdf", 1), ("m/file.pdf", 3)]
    assert loaded.documents[0].text == "First page\nmore"
    assert {document.title for document in loaded.documents} == {"First page"}
    assert loaded.warnings == ()


def test_the_files_own_title_wins(load: Loader, tmp_path: Path) -> None:
    pdf = with_pages("First line")
    pdf.set_metadata({"title": "MM-P11 Maintenance manual"})
    assert load(save(pdf, tmp_path), "file.pdf").documents[0].title == "MM-P11 Maintenance manual"


def test_a_table_row_stays_on_one_line(load: Loader, tmp_path: Path) -> None:
    pdf = pymupdf.open()
    row = "<tr><td width=200>{}</td><td width=100>{}</td><td>{}</td></tr>"
    html = f"<table>{row.format('Pressure', '250 bar', 'G1')}{row.format('Oil', '58 °C', 'G4')}</table>"
    pdf.new_page().insert_htmlbox(pymupdf.Rect(50, 50, 500, 300), html)
    (document,) = load(save(pdf, tmp_path), "file.pdf").documents
    lines = [" ".join(line.split()) for line in document.text.splitlines() if line]
    assert lines == ["Pressure 250 bar G1", "Oil 58 °C G4"]


def test_cells_drawn_one_by_one_are_joined_by_two_spaces(load: Loader, tmp_path: Path) -> None:
    pdf = pymupdf.open()
    page = pdf.new_page()
    for x, text in [(50, "Graphite"), (200, "7.0 percent"), (350, "8.5 percent")]:
        page.insert_text((x, 72), text)
    (document,) = load(save(pdf, tmp_path), "file.pdf").documents
    assert document.text == "Graphite  7.0 percent  8.5 percent"


def test_a_row_with_a_wrapped_cell_stays_together(load: Loader, tmp_path: Path) -> None:
    pdf = pymupdf.open()
    page = pdf.new_page()
    for place, text in [
        ((50, 72), "Accumulator"),
        ((50, 86), "precharge"),
        ((300, 72), "90 bar"),
        ((50, 110), "Next row"),
        ((300, 110), "58 bar"),
    ]:
        page.insert_text(place, text)
    (document,) = load(save(pdf, tmp_path), "file.pdf").documents
    assert document.text.split() == ["Accumulator", "precharge", "90", "bar", "Next", "row", "58", "bar"]


def test_the_columns_of_a_page_are_not_mixed(load: Loader, tmp_path: Path) -> None:
    pdf = pymupdf.open()
    page = pdf.new_page()
    page.insert_text((50, 72), ["left one", "left two", "left three"])
    page.insert_text((320, 72), ["right one", "right two", "right three"])
    (document,) = load(save(pdf, tmp_path), "file.pdf").documents
    assert document.text.split("\n") == ["left one", "left two", "left three", "right one", "right two", "right three"]


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_turned_page_is_read_like_an_upright_one(load: Loader, tmp_path: Path, degrees: int) -> None:
    pdf = pymupdf.open()
    page = pdf.new_page(width=842, height=595)
    page.insert_text((50, 72), ["one", "two"])
    for x, text in [(50, "Graphite"), (200, "7.0 percent"), (350, "8.5 percent")]:
        page.insert_text((x, 140), text)
    (upright,) = load(save(pdf, tmp_path), "file.pdf").documents
    assert upright.text == "one\ntwo\n\nGraphite  7.0 percent  8.5 percent"
    assert load(save(turned(pdf, degrees), tmp_path), "file.pdf").documents == (upright,)


def test_text_along_the_margin_is_not_part_of_a_line(load: Loader, tmp_path: Path) -> None:
    pdf = with_pages("one\ntwo")
    pdf[0].insert_text((40, 80), "MM-P11", rotate=90)
    assert load(save(pdf, tmp_path), "file.pdf").documents[0].text == "one\ntwo\n\nMM-P11"


def test_a_gap_between_paragraphs_is_a_blank_line(load: Loader, tmp_path: Path) -> None:
    pdf = pymupdf.open()
    page = pdf.new_page()
    page.insert_text((50, 72), ["one", "two"])
    page.insert_text((50, 140), ["three"])
    (document,) = load(save(pdf, tmp_path), "file.pdf").documents
    assert document.text == "one\ntwo\n\nthree"


def test_pages_of_images_are_named_and_the_rest_is_used(load: Loader, tmp_path: Path) -> None:
    pdf = with_pages("Text")
    add_image_page(pdf)
    add_image_page(pdf)
    loaded = load(save(pdf, tmp_path), "file.pdf")
    assert [document.page for document in loaded.documents] == [1]
    (warning,) = loaded.warnings
    assert warning.startswith("pages 2, 3 hold only images")


def test_a_pdf_of_images_alone_is_refused(load: Loader, tmp_path: Path) -> None:
    pdf = pymupdf.open()
    add_image_page(pdf)
    with pytest.raises(LoadError, match="only images"):
        load(save(pdf, tmp_path), "file.pdf")


def test_a_pdf_of_blank_pages_is_refused(load: Loader, tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="no text"):
        load(save(with_pages("", ""), tmp_path), "file.pdf")


def test_an_encrypted_pdf_is_refused(load: Loader, tmp_path: Path) -> None:
    path = save(with_pages("secret"), tmp_path, encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw="a", owner_pw="b")
    with pytest.raises(LoadError, match="encrypted"):
        load(path, "file.pdf")


def test_a_pdf_that_only_its_owner_may_change_is_read(load: Loader, tmp_path: Path) -> None:
    path = save(with_pages("open"), tmp_path, encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw="", owner_pw="b")
    assert load(path, "file.pdf").documents[0].text == "open"


@pytest.mark.parametrize("data", [b"%PDF-1.7\nnothing of worth", b"\x00" * 4000, b"plain words"])
def test_a_corrupt_pdf_is_refused(load: Loader, tmp_path: Path, data: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file.pdf"
    path.write_bytes(data)
    with pytest.raises(LoadError):
        load(path, "file.pdf")
    assert capfd.readouterr() == ("", "")


def test_an_empty_pdf_is_refused(load: Loader, tmp_path: Path) -> None:
    path = tmp_path / "file.pdf"
    path.touch()
    with pytest.raises(LoadError, match="empty"):
        load(path, "file.pdf")


def test_a_truncated_pdf_gives_what_can_be_read_or_is_refused(load: Loader, tmp_path: Path) -> None:
    path = save(with_pages("one", "two", "three"), tmp_path)
    data = path.read_bytes()
    for length in range(0, len(data), 97):
        path.write_bytes(data[:length])
        try:
            assert load(path, "file.pdf").documents
        except LoadError as error:
            assert str(error)
