"""Spreadsheets (XLSX, XLSM, XLS, ODS): a document a sheet, the number of its tab as the page, its name as the section.

The library holds a sheet as a rectangle around its cells: two cells of a small file can take all memory, which ends the
process that reads it.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rag_lab.corpus.load.archive import Archive, check_kind, opened_archive, own_title
from rag_lab.corpus.load.loader import MAX_FILE_CHARS, Loaded, LoadError, parsing
from rag_lab.corpus.load.markdown_table import CellBudget, markdown_table, too_long
from rag_lab.records import Document

_KIND, _OLD_KIND = "spreadsheet", "Excel workbook of the format before 2007"
_OLE = b"\xd0\xcf\x11\xe0"
_MAX_CELLS = 5_000_000  # of the rectangles around what is filled
_UNSTORED = re.compile(rb"<c ([^<>]*)>\s*<f(?:[^<>]*/>|[^<>]*>[^<>]*</f>)\s*(?:(?:<v ?/>|<v></v>)\s*)?</c>")
_ERROR = re.compile(rb"<c [^<>]*t=[\"']e[\"']")
_TEXT = re.compile(rb"t=[\"']str[\"']")  # of a formula: it may be empty, as that of `=""`


def load_spreadsheet(path: Path, source: str) -> Loaded:
    """Read every sheet of a spreadsheet, hidden ones too; a formula counts with the value that was stored for it.

    Raises:
        LoadError: if the file is empty, encrypted, damaged, too large, something else, or holds no value.
    """
    if path.suffix.lower() == ".xls":
        check_kind(path, _OLD_KIND, _OLE)
        return _read(path, source, "", [])
    with opened_archive(path, _KIND) as archive, parsing(_KIND):
        return _read(path, source, own_title(archive, _KIND), list(_left_blank(archive)))


def _read(path: Path, source: str, title: str, warnings: list[str]) -> Loaded:
    documents, budget, n_chars = [], CellBudget(), 0
    for number, name, rows in _sheets(path):
        n_chars += sum(len(value) for row in rows for value in row)
        if n_chars > MAX_FILE_CHARS:
            raise LoadError(f"the {_KIND} has more than {MAX_FILE_CHARS:,} characters; split it.")
        lines, n_too_long = markdown_table(rows, budget)
        if lines:
            documents.append(Document(source, number, "\n".join([f"# {name}", "", *lines]), title, section=name))
        if n_too_long:
            warnings.append(too_long(n_too_long, f"sheet {name!r}: "))
    if not documents:
        raise LoadError(warnings[0] if warnings else f"the {_KIND} holds no value; fill it or remove the file.")
    return Loaded(tuple(documents), tuple(warnings))


def _sheets(path: Path) -> Iterator[tuple[int, str, list[list[str]]]]:
    """Yield number, name and rows of each sheet; charts have numbers, too."""
    from python_calamine import PasswordError, SheetTypeEnum, load_workbook

    with parsing(_KIND):
        try:
            book = load_workbook(path)
        except PasswordError:
            raise LoadError(f"the {_KIND} is encrypted; save it without a password.") from None
        n_cells = 0
        for number, tab in enumerate(book.sheets_metadata):
            if tab.typ == SheetTypeEnum.WorkSheet:
                sheet = book.get_sheet_by_index(number)
                n_cells += sheet.width * sheet.total_height  # rows above the first one that is filled are read, too
                if n_cells > _MAX_CELLS:
                    raise LoadError(
                        f"the {_KIND} has more than {_MAX_CELLS:,} cells; split it or remove what is empty."
                    )
                rows = (list(map(_shown, row)) for row in sheet.iter_rows())
                yield number + 1, " ".join(tab.name.split()), list(filter(any, rows))


def _left_blank(archive: Archive) -> Iterator[str]:
    """Say how many formulas have no stored value, as no program has computed them, and how many cells an error."""
    n_formulas = n_errors = 0
    for name in archive.namelist():
        if "/worksheets/" in name and name.endswith(".xml"):
            part = archive.read(name)
            n_formulas += sum(not _TEXT.search(cell[1]) for cell in _UNSTORED.finditer(part))
            n_errors += sum(1 for _ in _ERROR.finditer(part))
    if n_formulas:
        formulas = "1 formula without a value" if n_formulas == 1 else f"{n_formulas:,} formulas without values"
        yield f"{formulas} left blank; save the {_KIND} in a spreadsheet program, which computes them."
    if n_errors:
        cells = "1 cell that shows an error" if n_errors == 1 else f"{n_errors:,} cells that show errors"
        yield f"{cells} left blank; correct their formulas."


def _shown(value: Any) -> str:
    """Return a cell's value as a reader would see it: whole numbers without a fraction, dates without a midnight."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time()
        return value.date().isoformat() if midnight else value.isoformat(sep=" ", timespec="seconds")
    return str(value)
