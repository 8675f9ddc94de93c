"""Excel workbooks (XLSX, XLSM): a document a sheet, its number as the page, its name as the section."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rag_lab.corpus.archive import opened_archive
from rag_lab.corpus.base import MAX_FILE_CHARS, Loaded, LoadError, parsing
from rag_lab.corpus.sheets import Sheet, documents_of, shown

_KIND = "Excel workbook"
_MAX_CELLS = 5_000_000  # of a workbook; empty ones that the file spells out count


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
        budget = _Budget()
        sheets = [
            Sheet(number, sheet.title, list(_rows(sheet, budget)))
            for number, sheet in enumerate(book.worksheets, start=1)
        ]
        return str(book.properties.title or ""), sheets
    finally:
        book.close()


class _Budget:
    """What a workbook may hold."""

    def __init__(self) -> None:
        self.cells = self.chars = 0

    def spend(self, row: list[str], n_cells: int) -> None:
        self.cells += n_cells + 1
        self.chars += sum(map(len, row))
        if self.cells > _MAX_CELLS:
            raise LoadError(f"the workbook has more than {_MAX_CELLS:,} cells; split it or remove what is empty.")
        if self.chars > MAX_FILE_CHARS:
            raise LoadError(f"the workbook has more than {MAX_FILE_CHARS:,} characters; split it.")


def _rows(sheet: Any, budget: _Budget) -> Iterator[list[str]]:
    sheet.reset_dimensions()  # what the file says of its own size may be wrong
    for cells in sheet.iter_rows(values_only=True):
        row = [shown(value) for value in cells]
        while row and not row[-1]:
            row.pop()
        budget.spend(row, len(cells))
        if row:
            yield row
