from __future__ import annotations

import datetime
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import xlwt
from openpyxl.chart import BarChart, Reference

from rag_lab.corpus import sheets
from rag_lab.corpus.base import LoadError
from rag_lab.corpus.xls import load_xls
from rag_lab.corpus.xlsx import load_xlsx


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
    loaded = load_xlsx(path, "x/a.xlsx")
    assert [(d.source, d.page, d.section) for d in loaded.documents] == [
        ("x/a.xlsx", 1, "Torques"),
        ("x/a.xlsx", 3, "Dates"),
    ]
    assert loaded.documents[0].text == "# Torques\n\n| Bolt | Nm |\n| --- | --- |\n| M6 | 9 |\n| M8 | 22.5 |"
    assert "| 2025-03-04 | TRUE |\n| 2025-03-04 06:30:00 | FALSE |" in loaded.documents[1].text
    assert loaded.warnings == ()


def test_a_row_whose_cells_have_lines_and_bars_is_one_line(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", S=[["a\nb", "c|d"], ["e", "f"]])
    assert "| a b | c\\|d |" in load_xlsx(path, "a.xlsx").documents[0].text.split("\n")


def test_formulas_without_values_are_counted_and_named(tmp_path: Path) -> None:
    path = workbook(
        tmp_path / "a.xlsx", Sums=[["=1+1", "=A1*2"]], Plain=[["x"], ["y"]], Part=[["Bolt", "Nm"], ["M6", "=3*3"]]
    )
    loaded = load_xlsx(path, "a.xlsx")
    assert [d.section for d in loaded.documents] == ["Plain", "Part"]
    end = "left blank; save the workbook in a spreadsheet program, which computes them."
    assert loaded.warnings == (
        f"sheet 'Sums': 2 formulas without values {end}",
        f"sheet 'Part': 1 formula without a value {end}",
    )
    with pytest.raises(LoadError, match="1 formula without a value"):
        load_xlsx(workbook(tmp_path / "b.xlsx", Sums=[["=1+1"]]), "b.xlsx")


def test_formulas_with_stored_values_are_read_even_where_these_are_empty_texts(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", S=[["Bolt", "Nm", "Note"], ["M6", "=3*3", '=""']])
    stored = {"xl/worksheets/sheet1.xml": lambda part: _stored(_stored(part, "B2", "", "9"), "C2", ' t="str"', "")}
    loaded = load_xlsx(repacked(path, stored), "a.xlsx")
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
    assert [(d.page, d.section) for d in load_xlsx(tmp_path / "a.xlsx", "a.xlsx").documents] == [
        (1, "Sheet"),
        (3, "Third"),
    ]


def test_the_strict_form_of_the_format_is_named(tmp_path: Path) -> None:
    usual, strict = "schemas.openxmlformats.org/spreadsheetml/2006/main", "purl.oclc.org/ooxml/spreadsheetml/main"
    names = ("xl/workbook.xml", "xl/worksheets/sheet1.xml")
    changes = {name: lambda part: part.replace(usual, strict) for name in names}
    with pytest.raises(LoadError, match="strict form"):
        load_xlsx(repacked(workbook(tmp_path / "a.xlsx", S=[["x"]]), changes), "a.xlsx")


def test_an_empty_workbook_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="no value"):
        load_xlsx(workbook(tmp_path / "a.xlsx", S=[]), "a.xlsx")


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
    documents = load_xls(tmp_path / "a.xls", "a.xls").documents
    assert [(d.page, d.section) for d in documents] == [(1, "Erste"), (2, "Zweite")]
    assert documents[0].text.endswith("| Maß | mm |\n| --- | --- |\n| Länge | 12 |")
    assert documents[1].text.endswith("| 2025-03-04 |")


def test_rows_of_the_old_format_are_not_filled_up_before_they_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = xlwt.Workbook()
    sheet = book.add_sheet("Far")
    sheet.write(0, 0, "near")
    sheet.write(5_000, 255, "far")
    book.save(str(tmp_path / "a.xls"))
    monkeypatch.setattr(sheets, "_MAX_CELLS", 1_000)
    assert load_xls(tmp_path / "a.xls", "a.xls").documents[0].text.endswith("| near |  |\n| --- | --- |\n|  | far |")
    monkeypatch.setattr(sheets, "_MAX_CELLS", 256)
    with pytest.raises(LoadError, match="more than 256 cells"):
        load_xls(tmp_path / "a.xls", "a.xls")


def test_a_time_of_day_in_the_old_format_has_no_date(tmp_path: Path) -> None:
    book = xlwt.Workbook()
    sheet = book.add_sheet("Shifts")
    sheet.write(0, 0, "Begin")
    sheet.write(1, 0, datetime.time(6, 30), xlwt.easyxf(num_format_str="hh:mm"))
    book.save(str(tmp_path / "a.xls"))
    assert load_xls(tmp_path / "a.xls", "a.xls").documents[0].text.endswith("| 06:30:00 |")
