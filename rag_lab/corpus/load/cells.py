"""Tables within documents, whose cells hold paragraphs, take several columns or rows, or frame a whole page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from rag_lab.corpus.load.markdown_table import CellBudget, is_too_long, markdown_table

_MAX_COLUMNS = 16_384  # of a row with merged cells, as in Excel

Block = tuple[str, str]  # a paragraph, heading or table: as a part of a cell's line, and as it stands by itself


@dataclass(slots=True)
class Cell:
    """A cell: what it holds, and how many columns and rows it takes."""

    blocks: list[Block] = field(default_factory=list)
    columns: int = 1
    rows: int = 1

    @property
    def text(self) -> str:
        """What it holds as one line."""
        return " ".join(line for line, _ in self.blocks)


_EMPTY = Cell()


def table_blocks(rows: Iterable[Sequence[Cell]], budget: CellBudget) -> list[str]:
    """Return the blocks that a table makes, one in Markdown as a rule.

    A table of one column is a frame, and so is a row too long for a line: what they hold stands by itself.

    Raises:
        LoadError: if the tables of the file have more cells than the budget.
    """
    placed = [(row, [cell.text for cell in row]) for row in _spread(rows, budget)]
    columns = {number for _, texts in placed for number, text in enumerate(texts) if text}
    blocks: list[str] = []
    for is_frame, some in groupby(placed, key=lambda pair: len(columns) == 1 or is_too_long(pair[1])):
        if is_frame:
            blocks += [alone for row, _ in some for cell in row for _, alone in cell.blocks]
        elif lines := markdown_table((texts for _, texts in some), budget)[0]:
            blocks.append("\n".join(lines))
    return blocks


def table_line(rows: Iterable[Sequence[Cell]]) -> str:
    """Return a table that stands in a cell of another, as a part of that cell's line."""
    texts = ([" ".join(cell.text.split()) for cell in row] for row in rows)
    return "; ".join(", ".join(filter(None, row)) for row in texts if any(row))


def _spread(rows: Iterable[Sequence[Cell]], budget: CellBudget) -> Iterator[list[Cell]]:
    """Yield the rows with an empty cell wherever a cell before or above reaches, so that each stands in its column."""
    taken: dict[int, int] = {}  # column -> number of the first row that no cell above reaches
    for number, row in enumerate(rows):
        placed: list[Cell] = []
        column = 0
        for cell in row:
            while taken.get(column, 0) > number:
                column += 1
            budget.spend(1, column - len(placed))
            placed += [_EMPTY] * (column - len(placed)) + [cell]
            end = max(column + 1, min(column + cell.columns, _MAX_COLUMNS))
            if cell.rows > 1:
                budget.spend(1, end - column)
                taken.update(dict.fromkeys(range(column, end), number + cell.rows))
            column = end
        yield placed
