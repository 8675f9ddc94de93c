"""Excel workbooks of the format before 2007 (XLS), with xlrd: a document a sheet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rag_lab.corpus.archive import check_kind
from rag_lab.corpus.base import MAX_FILE_CHARS, Loaded, LoadError, parsing
from rag_lab.corpus.sheets import Sheet, documents_of, shown

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
    with parsing(_KIND), _Quiet() as log, xlrd.open_workbook(str(path), logfile=log, on_demand=True) as book:
        sheets = [Sheet(n + 1, book.sheet_by_index(n).name, _rows(book, n)) for n in range(book.nsheets)]
    if sum(len(cell) for sheet in sheets for row in sheet.rows for cell in row) > MAX_FILE_CHARS:
        raise LoadError(f"the workbook has more than {MAX_FILE_CHARS:,} characters; split it.")
    return documents_of(sheets, source, "", ())


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


def _rows(book: Any, number: int) -> list[list[str]]:
    sheet = book.sheet_by_index(number)
    rows = [[_shown(cell, book) for cell in sheet.row(index)] for index in range(sheet.nrows)]
    book.unload_sheet(number)
    return [row for row in rows if any(row)]


def _shown(cell: Any, book: Any) -> str:
    import xlrd

    if cell.ctype == xlrd.XL_CELL_DATE:
        try:
            return shown(xlrd.xldate_as_datetime(cell.value, book.datemode))
        except (ValueError, OverflowError):  # no such day: shown as the number that it is
            return shown(cell.value)
    if cell.ctype == xlrd.XL_CELL_BOOLEAN:
        return shown(bool(cell.value))
    if cell.ctype == xlrd.XL_CELL_ERROR:
        return str(xlrd.error_text_from_code.get(cell.value, "#ERROR"))
    return shown(cell.value)
