"""Excel workbooks (XLSX, XLSM): a document a sheet, the number of its tab as the page, its name as the section."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rag_lab.corpus.archive import Archive, opened_archive
from rag_lab.corpus.base import Loaded, parsing
from rag_lab.corpus.sheets import Sheet, SheetBudget, documents_of, shown
from rag_lab.corpus.xlsx_tabs import n_unstored, tabs

_KIND = "Excel workbook"


def load_xlsx(path: Path, source: str) -> Loaded:
    """Read every sheet of a workbook, hidden ones too; a formula counts with the value that was stored for it.

    Raises:
        LoadError: if the file is empty, encrypted, damaged, too large, or holds no value.
    """
    with opened_archive(path, _KIND) as archive, parsing(_KIND):
        title, sheets = _read(path, archive)
    return documents_of(sheets, source, title)


def _read(path: Path, archive: Archive) -> tuple[str, list[Sheet]]:
    import openpyxl

    book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
    try:
        budget, places = SheetBudget(), tabs(archive, _KIND)
        sheets = []
        for sheet in book.worksheets:
            tab, rows = places[sheet.title], list(_rows(sheet, budget))
            sheets.append(Sheet(tab.number, sheet.title, rows, n_unstored(archive, tab.part)))
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
