import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path

import pymupdf
import pytest
from hostile_files import HOSTILE
from hypothesis import given, settings
from hypothesis import strategies as st
from office_files import turned

from rag_lab.corpus import reading
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.load.loader import Loader, LoadError
from rag_lab.corpus.load.pdf import load_pdf, load_pdf_tables
from rag_lab.corpus.load.pdf_pdfium import load_pdfium
from rag_lab.corpus.normalize import find_quote
from rag_lab.corpus.reading import Reading
from rag_lab.errors import ConfigError

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


WITHOUT_PYMUPDF = """
import sys
sys.modules["pymupdf"] = None
from pathlib import Path
from rag_lab.config import CorpusConfig
from rag_lab.corpus.folder import load_folder
from rag_lab.corpus.reading import load
from rag_lab.corpus.reading import Reading
folder = Path(sys.argv[1])
loaders = Reading(CorpusConfig(pdf="pdfium"), None, folder).loaders
print(load(folder / "a.pdf", "a.pdf", loaders).documents[0].text, load_folder(folder).documents[0].text, sep="|")
"""


@pytest.mark.parametrize("name", [name for name in HOSTILE if name.endswith(".pdf")])
def test_hostile_files_are_met_as_by_the_other_readers(tmp_path: Path, name: str) -> None:
    make, words = HOSTILE[name]
    make(tmp_path / name)
    try:
        reasons = load_pdfium(tmp_path / name, name).warnings
    except Exception as error:
        reasons = (str(error),)
    assert any(words in reason for reason in reasons), reasons


def test_a_page_that_unpacks_to_too_much_is_found_in_an_enciphered_file(tmp_path: Path) -> None:
    HOSTILE["bomb.pdf"][0](tmp_path / "a.pdf")
    with pymupdf.open(tmp_path / "a.pdf") as pdf:
        pdf.save(tmp_path / "b.pdf", encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw="", owner_pw="b")
    loaded = load_pdfium(tmp_path / "b.pdf", "b.pdf")
    assert [document.page for document in loaded.documents] == [1]
    assert loaded.warnings == ("page 2 holds content that cannot be read: left out; replace the file.",)


def test_a_word_broken_at_a_lines_end_is_one_word(tmp_path: Path) -> None:
    pdf = pymupdf.open()
    pdf.new_page().insert_text((72, 72), "The hydrau-\nlic oil")
    pdf.save(tmp_path / "a.pdf")
    loaders = Reading(CorpusConfig(pdf="pdfium"), None, tmp_path).loaders
    assert reading.load(tmp_path / "a.pdf", "a.pdf", loaders).documents[0].text == "The hydraulic oil"


def test_pymupdf_may_be_left_out(tmp_path: Path) -> None:
    pdf = pymupdf.open()
    pdf.new_page().insert_text((72, 72), "58 bar")
    pdf.save(tmp_path / "a.pdf")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYMUPDF, str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert done.stdout == "58 bar|58 bar\n", done.stderr


@pytest.mark.parametrize(
    ("pdf", "package", "other"), [("tables", "pymupdf", "pdfium"), ("pdfium", "pypdfium2", "text")]
)
def test_a_reader_that_is_not_installed_is_named_with_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pdf: str, package: str, other: str
) -> None:
    def installed(name: str) -> str:
        if name == package:
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(reading, "version", installed)
    with pytest.raises(ConfigError, match=f"corpus.pdf: {pdf} needs {package}.* set corpus.pdf to {other} or install"):
        Reading(CorpusConfig.model_validate({"pdf": pdf}), None, tmp_path)
    config = CorpusConfig.model_validate({"pdf": other})
    assert package not in str(Reading(config, None, tmp_path).identity())
