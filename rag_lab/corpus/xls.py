"""Excel workbooks of the format before 2007 (XLS), with xlrd: a document a sheet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rag_lab.corpus.archive import check_kind
from rag_lab.corpus.base import Loaded, LoadError, parsing
from rag_lab.corpus.sheets import Sheet, SheetBudget, documents_of, shown

_KIND = "Excel workbook of the format before 2007"
_MARK = b"\xd0\xcf\x11\xe0"
_MAX_BYTES = 100 * 2**20  # the library holds all of it in memory


def load_xls(path: Path, source: str) -> Loaded:
    """Read every sheet of a workbook, hidden ones too.

    Raises:
        LoadError: if the file is empty, encrypted, damaged, too large, something else, or holds no value.
    """
    import xlrd

    check_kind(path, _KIND, _MARK)
    if path.stat().st_size > _MAX_BYTES:
        raise LoadError(f"the workbook is larger than {_MAX_BYTES / 2**20:.0f} MiB; split it.")
    options = {"on_demand": True, "ragged_rows": True}  # else each row is filled up to the longest one's length
    with parsing(_KIND), _Quiet() as log, xlrd.open_workbook(str(path), logfile=log, **options) as book:
        budget = SheetBudget()
        sheets = [Sheet(n + 1, book.sheet_by_index(n).name, list(_rows(book, n, budget))) for n in range(book.nsheets)]
    return documents_of(sheets, source, "")


class _Quiet:
    """A log that keeps nothing: the library writes about damage to its log, stdout where none is given."""

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        """Do nothing."""

    def __enter__(self) -> _Quiet:
        return self

    def __exit__(self, *error: object) -> None:
        """Do nothing."""


def _rows(book: Any, number: int, budget: SheetBudget) -> Iterator[list[str]]:
    sheet = book.sheet_by_index(number)
    budget.spend_cells(sum(map(sheet.row_len, range(sheet.nrows))))
    for index in range(sheet.nrows):
        row = [_shown(cell, book) for cell in sheet.row(index)]
        budget.spend_text(row)
        if any(row):
            yield row
    book.unload_sheet(number)


def _shown(cell: Any, book: Any) -> str:
    import xlrd

    if cell.ctype == xlrd.XL_CELL_DATE:
        try:
            moment = xlrd.xldate_as_datetime(cell.value, book.datemode)
            return shown(moment.time() if 0 <= cell.value < 1 else moment)  # less than a day: a time of day
        except (ValueError, OverflowError):  # no such day: shown as the number that it is
            return shown(cell.value)
    if cell.ctype == xlrd.XL_CELL_BOOLEAN:
        return shown(bool(cell.value))
    if cell.ctype == xlrd.XL_CELL_ERROR:
        return str(xlrd.error_text_from_code.get(cell.value, "#ERROR"))
    return shown(cell.value)
