"""The blocks of a Word file in Markdown: headings, paragraphs, list items, tables, text boxes after their paragraph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rag_lab.corpus.cells import Block, Cell, table_blocks, table_line
from rag_lab.corpus.docx_styles import Styles, W, value
from rag_lab.corpus.docx_text import EQUATIONS, UNREAD, Notes, read_text
from rag_lab.corpus.tables import CellBudget

_PARAGRAPHS = {f"{W}p", *EQUATIONS}
_TABLES = {f"{W}tbl"}
_ROWS = {f"{W}tr"}
_CELLS = {f"{W}tc"}
_MAX_DIGITS = 5  # of the number of columns that a cell says it takes


class Blocks:
    """Reads blocks from the parts of one file. The parser nests elements no more deeply than Python may recurse."""

    def __init__(self, styles: Styles) -> None:
        self.notes = Notes()
        self._styles = styles
        self._budget = CellBudget()

    def read(self, element: Any) -> list[Block]:
        """Return the blocks below an element, in order.

        Raises:
            LoadError: if the tables of the file have more cells than are read.
        """
        blocks: list[Block] = []
        for part in _within(element, _PARAGRAPHS | _TABLES):
            blocks += self._table(part) if part.tag in _TABLES else self._paragraph(part)
        return blocks

    def _paragraph(self, element: Any) -> list[Block]:
        text, boxes = read_text(element, self.notes)
        prefix = self._styles.prefix(element)
        alone = prefix + (" ".join(text.split()) if prefix.startswith("#") else text)
        return ([(text, alone)] if text else []) + [block for box in boxes for block in self.read(box)]

    def _table(self, element: Any) -> list[Block]:
        rows = [list(self._cells(row)) for row in _within(element, _ROWS)]
        blocks = table_blocks(rows, self._budget)
        return [(table_line(rows), "\n\n".join(blocks))] if blocks else []

    def _cells(self, row: Any) -> Iterator[Cell]:
        """Yield the cells of a row; one that a cell above reaches over is there, and empty."""
        if skipped := _number(row.find(f"{W}trPr/{W}gridBefore")):
            yield Cell(columns=skipped)
        for cell in _within(row, _CELLS):
            yield Cell(self.read(cell), _number(cell.find(f"{W}tcPr/{W}gridSpan")) or 1)


def _within(element: Any, tags: set[str]) -> Iterator[Any]:
    """Yield the elements with these tags below another, none within another of them: controls and changes are open."""
    pending = list(reversed(element))
    while pending:
        part = pending.pop()
        if part.tag in tags:
            yield part
        elif part.tag not in UNREAD:
            pending += reversed(part)


def _number(element: Any) -> int:
    number = value(element)
    return int(number) if number.isdecimal() and len(number) <= _MAX_DIGITS else 0
