import datetime
import os
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import xlwt
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.chart import BarChart, Reference

from rag_lab.corpus.load import tables
from rag_lab.corpus.load import tables as archive
from rag_lab.corpus.load.loader import LoadError
from rag_lab.corpus.load.tables import (
    MAX_ROW_CHARS,
    CellBudget,
    load_delimited,
    load_spreadsheet,
    markdown_table,
    opened_archive,
)
from rag_lab.corpus.reading import load_bounded
from rag_lab.corpus.spans import row_spans


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "Bolt,Nm\nM6,9\n"),
        ("a.csv", "Bolt;Nm\nM6;9\n"),
        ("a.csv", "Bolt\tNm\nM6\t9\n"),
        ("a.tsv", "Bolt\tNm\nM6\t9\n"),
        ("a.csv", '"Bolt"|"Nm"\n"M6"|"9"\n'),
        ("a.csv", "Bolt,Nm\r\n\r\nM6,9\r\n,\r\n"),
        ("a.csv", "sep=;\nBolt;Nm\nM6;9\n"),
        ("a.csv", '"sep=|"\nBolt|Nm\nM6|9\n'),
        ("a.tsv", "sep=,\nBolt,Nm\nM6,9\n"),
    ],
)
def test_the_separator_is_found_out(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode())
    (document,) = load_delimited(path, name).documents
    assert document.text == "| Bolt | Nm |\n| --- | --- |\n| M6 | 9 |"


def test_decimal_commas_do_not_hide_the_semicolon(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Teil;Länge;Breite\nA;1,5;2,25\nB;3;4\n", encoding="cp1252")
    loaded = load_delimited(path, "a.csv")
    assert "| A | 1,5 | 2,25 |" in loaded.documents[0].text
    assert "cp1252" in loaded.warnings[0]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('Part;Note\nPump;"first\nsecond"\nValve;ok\n', ["Part | Note", "Pump | first second", "Valve | ok"]),
        ("1,5;2,5;3,5\n4,5;5,5;6,5\n", ["1,5 | 2,5 | 3,5", "4,5 | 5,5 | 6,5"]),
        ("Länge, mm;Breite, mm\n1,5;2,5\n", ["Länge, mm | Breite, mm", "1,5 | 2,5"]),
        ("Report of 2024\n\nPart;Nm\nM6;9\n", ["Report of 2024 | ", "Part | Nm", "M6 | 9"]),
        ("Part;Nm;Note\nM6;9,5;dry\nTotal\n", ["Part | Nm | Note", "M6 | 9,5 | dry", "Total |  | "]),
        ("id,tags\n1,a;b\n2,c;d\n", ["id | tags", "1 | a;b", "2 | c;d"]),
        ('name, note\n"Pump", "a, b"\n', ["name | note", "Pump | a, b"]),
        ("1,2,3\n4,5,6\n", ["1 | 2 | 3", "4 | 5 | 6"]),
        ("Comment\nHello, world\nNo comma\n", ["Comment", "Hello, world", "No comma"]),
    ],
)
def test_the_separator_is_what_parts_the_rows_alike(tmp_path: Path, text: str, rows: list[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    lines = load_delimited(path, "a.csv").documents[0].text.split("\n")
    assert [line[2:-2] for line in (lines[0], *lines[2:])] == rows


def test_a_row_that_the_sample_cuts_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a|b\n" + "1,5,6,7|" + "x" * 30_000)
    assert load_delimited(path, "a.csv").documents[0].text.startswith("| a | b |")


def test_quoted_line_ends_stay_in_their_row(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('Part,Note\nPump,"first\nsecond"\n')
    assert load_delimited(path, "a.csv").documents[0].text.split("\n")[2] == "| Pump | first second |"


def test_a_row_that_is_too_long_is_left_out_and_said(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"Part,Note\nPump,{'x' * 30_000}\nValve,y\n")
    loaded = load_delimited(path, "a.csv")
    assert loaded.documents[0].text.endswith("| Valve | y |")
    assert loaded.warnings == ("1 row of more than 20,000 characters left out; shorten the cells.",)


def test_a_table_without_cells_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(",,\n,,\n")
    with pytest.raises(LoadError, match="empty"):
        load_delimited(path, "a.csv")


cells = st.text(st.sampled_from("ab |\n\\#-"), max_size=6)


def test_rows_are_lines_with_what_is_empty_left_out() -> None:
    rows = [["", "", ""], ["Part", "", " Torque\nNm "], ["M6", "", "9"], ["", "", ""], ["a|b", ""]]
    assert markdown_table(rows) == (["| Part | Torque Nm |", "| --- | --- |", "| M6 | 9 |", "| a\\|b |  |"], 0)
    assert markdown_table([[], [" "]]) == ([], 0)


def test_a_row_beyond_all_bounds_is_left_out_and_counted() -> None:
    lines, n_too_long = markdown_table([["h"], ["x" * (MAX_ROW_CHARS + 1)], ["y"]])
    assert (lines, n_too_long) == (["| h |", "| --- |", "| y |"], 1)


def test_the_bars_between_cells_count_for_the_length_of_a_row() -> None:
    assert markdown_table([["h"], ["x"] * (MAX_ROW_CHARS // 4 + 1), ["y"]]) == (["| h |", "| --- |", "| y |"], 1)


def test_a_table_that_one_wide_row_would_blow_up_is_refused_before_it_is_filled_up() -> None:
    wide = ["b"] * 4_000
    markdown_table([*[["a"]] * 800, wide])
    with pytest.raises(LoadError, match="more than 3,333,333 cells"):
        markdown_table([*[["a"]] * 1_000, wide])


def test_the_tables_of_a_file_share_their_budget() -> None:
    rows, budget = [*[["a"]] * 500, ["b"] * 4_000], CellBudget()
    markdown_table(rows, budget)
    with pytest.raises(LoadError, match="cells"):
        markdown_table(rows, budget)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(cells, max_size=4), max_size=6))
def test_every_line_of_a_table_is_found_again_as_a_row(rows: list[list[str]]) -> None:
    lines, _ = markdown_table(rows)
    text = "\n".join(["before", *lines, "after"])
    assert [text[start:end] for start, end in row_spans(text)] == lines


def test_only_lines_within_bars_are_rows() -> None:
    text = "a | b\n  | c | d |  \n|\n| open\n|x|"
    assert [text[start:end] for start, end in row_spans(text)] == ["| c | d |", "|x|"]


def workbook(path: Path, **contents: list[list[Any]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in contents.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_every_sheet_is_a_document_with_its_number_and_name(tmp_path: Path) -> None:
    path = workbook(
        tmp_path / "a.xlsx",
        Torques=[["Bolt", "Nm"], ["M6", 9], [None, None], ["M8", 22.5]],
        Empty=[],
        Dates=[["Day", "Done"], [datetime.datetime(2025, 3, 4), True], [datetime.datetime(2025, 3, 4, 6, 30), False]],
    )
    loaded = load_spreadsheet(path, "x/a.xlsx")
    assert [(d.source, d.page, d.section) for d in loaded.documents] == [
        ("x/a.xlsx", 1, "Torques"),
        ("x/a.xlsx", 3, "Dates"),
    ]
    assert loaded.documents[0].text == "# Torques\n\n| Bolt | Nm |\n| --- | --- |\n| M6 | 9 |\n| M8 | 22.5 |"
    assert "| 2025-03-04 | TRUE |\n| 2025-03-04 06:30:00 | FALSE |" in loaded.documents[1].text
    assert loaded.warnings == ()


def test_a_row_whose_cells_have_lines_and_bars_is_one_line(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", S=[["a\nb", "c|d"], ["e", "f"]])
    assert "| a b | c\\|d |" in load_spreadsheet(path, "a.xlsx").documents[0].text.split("\n")


def test_formulas_without_values_are_counted_and_said(tmp_path: Path) -> None:
    path = workbook(
        tmp_path / "a.xlsx", Sums=[["=1+1", "=A1*2"]], Plain=[["x"], ["y"]], Part=[["Bolt", "Nm"], ["M6", "=3*3"]]
    )
    loaded = load_spreadsheet(path, "a.xlsx")
    assert [d.section for d in loaded.documents] == ["Plain", "Part"]
    assert loaded.warnings == (
        "3 formulas without values left blank; save the spreadsheet in a spreadsheet program, which computes them.",
    )
    with pytest.raises(LoadError, match="1 formula without a value"):
        load_spreadsheet(workbook(tmp_path / "b.xlsx", Sums=[["=1+1"]]), "b.xlsx")


def test_cells_that_show_errors_are_counted_and_said(tmp_path: Path) -> None:
    loaded = load_spreadsheet(workbook(tmp_path / "a.xlsx", S=[["Nm", "#DIV/0!", 9]]), "a.xlsx")
    assert "| Nm | 9 |" in loaded.documents[0].text
    assert loaded.warnings == ("1 cell that shows an error left blank; correct their formulas.",)


def test_hidden_sheets_are_read_and_the_title_is_the_files_own(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.properties.title = "Press P-11"
    book.active.append([0, datetime.time(6, 30), datetime.timedelta(hours=30)])
    hidden = book.create_sheet("Hidden")
    hidden.append(["Oil"])
    hidden.sheet_state = "hidden"
    book.save(tmp_path / "a.xlsm")
    first, second = load_spreadsheet(tmp_path / "a.xlsm", "a.xlsm").documents
    assert "| 0 | 06:30:00 | 1 day, 6:00:00 |" in first.text and first.title == "Press P-11"
    assert second.section == "Hidden"


def test_a_file_of_open_document_is_read(tmp_path: Path) -> None:
    cells = "".join(f"<table:table-cell {cell}</table:table-cell>" for cell in _ODS_CELLS)
    table = f'<table:table table:name="Bolts"><table:table-row>{cells}</table:table-row></table:table>'
    space = "urn:oasis:names:tc:opendocument:xmlns"
    names = " ".join(f'xmlns:{name}="{space}:{name}:1.0"' for name in ("office", "table", "text"))
    body = f"<office:body><office:spreadsheet>{table}</office:spreadsheet></office:body>"
    with zipfile.ZipFile(tmp_path / "a.ods", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        archive.writestr("content.xml", f"<office:document-content {names}>{body}</office:document-content>")
    (document,) = load_spreadsheet(tmp_path / "a.ods", "a.ods").documents
    assert (document.page, document.section) == (1, "Bolts")
    assert "| M6 | 9 | 2025-03-04 |" in document.text


_ODS_CELLS = (
    'office:value-type="string"><text:p>M6</text:p>',
    'office:value-type="float" office:value="9"><text:p>9</text:p>',
    'office:value-type="date" office:date-value="2025-03-04"><text:p>4 March</text:p>',
)


@pytest.mark.parametrize("places", [("A1", "XFD1048576"), ("A1048576", "XFD1048576")])
def test_cells_far_from_each_other_do_not_take_all_memory(tmp_path: Path, places: tuple[str, str]) -> None:
    path = workbook(tmp_path / "a.xlsx", S=[["x"]])
    cells = "".join(f'<row r="{place.lstrip("AXFD")}"><c r="{place}"><v>1</v></c></row>' for place in places)
    changed = {"xl/worksheets/sheet1.xml": lambda part: re.sub("<row.*</row>", cells, part)}
    with pytest.raises(LoadError, match="of memory|5,000,000 cells"):
        load_bounded(repacked(path, changed), "a.xlsx")


def test_formulas_with_stored_values_are_read_even_where_these_are_empty_texts(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", S=[["Bolt", "Nm", "Note"], ["M6", "=3*3", '=""']])
    stored = {"xl/worksheets/sheet1.xml": lambda part: _stored(_stored(part, "B2", "", "9"), "C2", ' t="str"', "")}
    loaded = load_spreadsheet(repacked(path, stored), "a.xlsx")
    assert "| M6 | 9 |  |" in loaded.documents[0].text
    assert loaded.warnings == ()


def _stored(part: str, place: str, kind: str, value: str) -> str:
    """Store a value for the formula in a cell."""
    found = re.compile(rf'<c r="{place}"[^>]*>(<f>.*?</f>)<v ?/?>(?:</v>)?</c>')
    assert found.search(part)
    return found.sub(rf'<c r="{place}"{kind}>\1<v>{value}</v></c>', part)


def repacked(path: Path, changes: Mapping[str, Callable[[str], str]]) -> Path:
    """Change parts of a workbook."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, changes.get(name, str)(text))
    return path


def test_a_chart_has_a_number_too(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["Bolt", "Nm"])
    chart = BarChart()
    chart.add_data(Reference(book.active, min_col=2, min_row=1, max_row=2), titles_from_data=True)
    book.create_chartsheet("Chart").add_chart(chart)
    book.create_sheet("Third").append(["Oil", "bar"])
    book.save(tmp_path / "a.xlsx")
    assert [(d.page, d.section) for d in load_spreadsheet(tmp_path / "a.xlsx", "a.xlsx").documents] == [
        (1, "Sheet"),
        (3, "Third"),
    ]


def test_the_strict_form_of_the_format_is_read(tmp_path: Path) -> None:
    usual, strict = "schemas.openxmlformats.org/", "purl.oclc.org/ooxml/"
    to_strict = lambda part: re.sub(f"{usual}(spreadsheetml|officeDocument)/2006/", rf"{strict}\1/", part)  # noqa: E731
    names = ("xl/workbook.xml", "xl/worksheets/sheet1.xml", "_rels/.rels", "xl/_rels/workbook.xml.rels")
    path = repacked(workbook(tmp_path / "a.xlsx", S=[["x", 1.5]]), dict.fromkeys(names, to_strict))
    assert "| x | 1.5 |" in load_spreadsheet(path, "a.xlsx").documents[0].text


def test_an_empty_workbook_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="no value"):
        load_spreadsheet(workbook(tmp_path / "a.xlsx", S=[]), "a.xlsx")


def test_the_format_before_2007_is_read(tmp_path: Path) -> None:
    book = xlwt.Workbook()
    for name, rows in {
        "Erste": [["Maß", "mm"], ["Länge", 12.0]],
        "Zweite": [["Tag"], [datetime.date(2025, 3, 4)]],
    }.items():
        sheet = book.add_sheet(name)
        for y, row in enumerate(rows):
            for x, value in enumerate(row):
                date = xlwt.easyxf(num_format_str="YYYY-MM-DD")
                sheet.write(y, x, value, date) if isinstance(value, datetime.date) else sheet.write(y, x, value)
    book.save(str(tmp_path / "a.xls"))
    documents = load_spreadsheet(tmp_path / "a.xls", "a.xls").documents
    assert [(d.page, d.section) for d in documents] == [(1, "Erste"), (2, "Zweite")]
    assert documents[0].text.endswith("| Maß | mm |\n| --- | --- |\n| Länge | 12 |")
    assert documents[1].text.endswith("| 2025-03-04 |")


def test_empty_cells_between_filled_ones_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = xlwt.Workbook()
    sheet = book.add_sheet("Far")
    sheet.write(0, 0, "near")
    sheet.write(5_000, 255, "far")
    book.save(str(tmp_path / "a.xls"))
    assert (
        load_spreadsheet(tmp_path / "a.xls", "a.xls")
        .documents[0]
        .text.endswith("| near |  |\n| --- | --- |\n|  | far |")
    )
    monkeypatch.setattr(tables, "_MAX_CELLS", 1_000_000)
    with pytest.raises(LoadError, match="more than 1,000,000 cells"):
        load_spreadsheet(tmp_path / "a.xls", "a.xls")


def test_a_time_of_day_in_the_old_format_has_no_date(tmp_path: Path) -> None:
    book = xlwt.Workbook()
    sheet = book.add_sheet("Shifts")
    sheet.write(0, 0, "Begin")
    sheet.write(1, 0, datetime.time(6, 30), xlwt.easyxf(num_format_str="hh:mm"))
    book.save(str(tmp_path / "a.xls"))
    assert load_spreadsheet(tmp_path / "a.xls", "a.xls").documents[0].text.endswith("| 06:30:00 |")


def test_a_formula_before_a_million_spaces_is_searched_once(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", S=[["x"]])
    spaces = f'<row r="2"><c r="A2"><f>1</f>{" " * 1_000_000}</c></row></sheetData>'
    changed = {"xl/worksheets/sheet1.xml": lambda part: part.replace("</sheetData>", spaces)}
    assert load_bounded(repacked(path, changed), "a.xlsx").warnings[0].startswith("1 formula without a value")


def packed(path: Path, name: str, data: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, data)
    return path


@pytest.mark.parametrize(
    ("name", "n_bytes"),
    [
        ("xl/_rels/workbook.xml.rels", 11 * 2**20),
        ("[Content_Types].xml", 11 * 2**20),
        ("xl/sheet.bin", 101 * 2**20),
        ("xl/media/said_to_be_a_picture.png", 101 * 2**20),
    ],
)
def test_a_part_that_unpacks_to_too_much_is_refused_whatever_its_name(tmp_path: Path, name: str, n_bytes: int) -> None:
    path = packed(tmp_path / "a.xlsx", name, bytes(n_bytes))
    with pytest.raises(LoadError, match=r"unpacks to 1?\d1 MiB of "), opened_archive(path, "workbook"):
        pass


def test_a_picture_may_be_larger_than_a_part_that_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_MAX_PART_BYTES", 1000)
    with opened_archive(packed(tmp_path / "a.docx", "word/media/film.mp4", os.urandom(2000)), "document") as opened:
        assert opened.namelist() == ["word/media/film.mp4"]


@pytest.mark.parametrize(("tag", "n"), [(b"<p/>", 40), (b"<p a='1' b=\"2\"/>", 14)])
def test_millions_of_tags_and_attributes_are_refused_before_they_are_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tag: bytes, n: int
) -> None:
    monkeypatch.setattr(archive.Archive, "max_tags", 50)
    with opened_archive(packed(tmp_path / "a.docx", "a.xml", b"<a>" + tag * n + b"</a>"), "document") as opened:
        assert len(archive.parsed_part(opened, "a.xml", "document")) == n
        with pytest.raises(LoadError, match="more than 50 XML tags and attributes"):
            archive.parsed_part(opened, "a.xml", "document")
