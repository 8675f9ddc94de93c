"""Sheets of a workbook as documents, whatever format it has."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rag_lab.corpus.base import MAX_FILE_CHARS, Loaded, LoadError
from rag_lab.corpus.tables import CellBudget, markdown_table, too_long
from rag_lab.records import Document

_MAX_CELLS = 5_000_000


@dataclass(frozen=True, slots=True)
class Sheet:
    """The rows of a sheet that are not empty, as text, and how many formulas are blank for want of a stored value.

    Sheets count from 1, in the order of the workbook.
    """

    number: int
    name: str
    rows: Sequence[Sequence[str]]
    n_unstored: int = 0


class SheetBudget:
    """What a workbook may hold, empty cells that the file spells out included."""

    def __init__(self) -> None:
        self._cells = self._chars = 0

    def spend_cells(self, n_cells: int) -> None:
        """Count cells, before they are read.

        Raises:
            LoadError: if there are too many.
        """
        self._cells += n_cells
        if self._cells > _MAX_CELLS:
            raise LoadError(f"the workbook has more than {_MAX_CELLS:,} cells; split it or remove what is empty.")

    def spend_text(self, row: Sequence[str]) -> None:
        """Count the characters of a row.

        Raises:
            LoadError: if there are too many.
        """
        self._chars += sum(map(len, row))
        if self._chars > MAX_FILE_CHARS:
            raise LoadError(f"the workbook has more than {MAX_FILE_CHARS:,} characters; split it.")


def documents_of(sheets: Sequence[Sheet], source: str, title: str) -> Loaded:
    """Return a document for each sheet that holds something: its name as a heading, then its table.

    Args:
        sheets: of one workbook.
        source: the workbook.
        title: the workbook's own, "" where it has none.

    Raises:
        LoadError: if no sheet holds anything.
    """
    documents, warnings, budget = [], [], CellBudget()
    for sheet in sheets:
        lines, n_too_long = markdown_table(sheet.rows, budget)
        name = " ".join(sheet.name.split())
        if lines:
            text = "\n".join([f"# {name}", "", *lines])
            documents.append(Document(source, sheet.number, text, title, section=name))
        if n_too_long:
            warnings.append(too_long(n_too_long, f"sheet {name!r}: "))
        if sheet.n_unstored:
            warnings.append(_unstored(sheet.n_unstored, f"sheet {name!r}: "))
    if not documents:
        raise LoadError(warnings[0] if warnings else "the workbook holds no value; fill it or remove the file.")
    return Loaded(tuple(documents), tuple(warnings))


def _unstored(n_formulas: int, where: str) -> str:
    formulas = "1 formula without a value" if n_formulas == 1 else f"{n_formulas:,} formulas without values"
    return f"{where}{formulas} left blank; save the workbook in a spreadsheet program, which computes them."


def shown(value: Any) -> str:
    """Return a cell's value as a reader would see it: whole numbers without a fraction, dates without a midnight."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time()
        return value.date().isoformat() if midnight else value.isoformat(sep=" ", timespec="seconds")
    return str(value)
