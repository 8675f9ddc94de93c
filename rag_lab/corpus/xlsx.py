"""Excel workbooks (XLSX, XLSM): a document a sheet, its number as the page, its name as the section."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rag_lab.corpus.archive import opened_archive
from rag_lab.corpus.base import Loaded, parsing
from rag_lab.corpus.sheets import Sheet, SheetBudget, documents_of, shown

_KIND = "Excel workbook"


def load_xlsx(path: Path, source: str) -> Loaded:
    """Read every sheet of a workbook, hidden ones too; a formula counts with the value that was stored for it.

    Raises:
        LoadError: if the file is empty, encrypted, damaged, too large, or holds no value.
    """
    with opened_archive(path, _KIND), parsing(_KIND):
        title, sheets = _read(path, stored_values=True)
        empty = {sheet.number for sheet in sheets if not sheet.rows}
        formulas = {s.number for s in _read(path, stored_values=False)[1] if s.number in empty and s.rows}
    return documents_of(sheets, source, title, formulas)


def _read(path: Path, stored_values: bool) -> tuple[str, list[Sheet]]:
    import openpyxl

    book = openpyxl.load_workbook(path, read_only=True, data_only=stored_values, keep_links=False)
    try:
        budget = SheetBudget()
        sheets = [
            Sheet(number, sheet.title, list(_rows(sheet, budget)))
            for number, sheet in enumerate(book.worksheets, start=1)
        ]
        return str(book.properties.title or ""), sheets
    finally:
        book.close()


def _rows(sheet: Any, budget: SheetBudget) -> Iterator[list[str]]:
    sheet.reset_dimensions()  # what the file says of its own size may be wrong
    for cells in sheet.iter_rows(values_only=True):
        budget.spend_cells(len(cells) + 1)
        row = [shown(value) for value in cells]
        while row and not row[-1]:
            row.pop()
        budget.spend_text(row)
        if row:
            yield row
