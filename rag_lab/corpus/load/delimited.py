"""CSV and TSV files: one document, a Markdown table.

Tables as Markdown: a row is one line that begins and ends with a bar, and no splitter cuts such a line. Those within
documents have cells that hold paragraphs, take several columns or rows, or frame a whole page.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from rag_lab.corpus.load.loader import MAX_FILE_CHARS, Loaded, LoadError, parsing
from rag_lab.corpus.load.text import read_text
from rag_lab.records import Document

_MAX_COLUMNS = 16_384  # of a row with merged cells, as in Excel

Block = tuple[str, str]  # a paragraph, heading or table: as a part of a cell's line, and as it stands by itself

MAX_ROW_CHARS = 20_000  # what is longer is no row that anybody reads
_BAR_CHARS = 3  # between two cells
MAX_CELLS = MAX_FILE_CHARS // _BAR_CHARS  # an empty one takes its bar too: more are more text than a file may hold
_DELIMITERS = ",;\t|"
_NONE = "\x1f"  # what a table of one column is parted by: no text holds it
_DECLARED = re.compile(r'"?sep=([^"\n])"?\n', re.IGNORECASE)  # Excel's own first line
_DIVIDING_COMMA = re.compile(r"(?<!\d),(?! )|,(?![\d ])")  # neither within a number nor within a sentence
_SNIFFED_CHARS = 20_000
_MAX_CELL_CHARS = 2**31 - 1  # a longer row is left out by its length, not an error


class CellBudget:
    """How many cells the tables of one file may still take, the empty ones that fill up a short row included."""

    def __init__(self) -> None:
        self._left = MAX_CELLS

    def spend(self, n_rows: int, n_columns: int) -> None:
        """Take the cells of a table, before it is written."""
        self._left -= n_rows * n_columns
        if self._left < 0:
            raise LoadError(
                f"the tables take more than {MAX_CELLS:,} cells, the empty ones that fill up short rows and stand for "
                "merged cells included; split the file or shorten the widest rows."
            )


def markdown_table(rows: Iterable[Sequence[str]], budget: CellBudget | None = None) -> tuple[list[str], int]:
    """Return the lines of a table whose first row is its header, and how many rows were too long and left out.

    Cells lose their line ends and surplus spaces; rows and columns that are empty throughout are left out. `budget` is
    that of the file where it may hold more than one table.
    """
    cleaned = [[_cell(cell) for cell in row] for row in rows]
    filled = [row for row in cleaned if any(row)]
    kept = [row for row in filled if not is_too_long(row)]
    columns = sorted({number for row in kept for number, cell in enumerate(row) if cell})
    (budget or CellBudget()).spend(len(kept), len(columns))
    lines = [_line((row[number] if number < len(row) else "") for number in columns) for row in kept]
    if lines:
        lines.insert(1, _line("---" for _ in columns))
    return lines, len(filled) - len(kept)


def is_too_long(cells: Iterable[str]) -> bool:
    """Return whether a row of cleaned cells is left out of a table for its length."""
    return sum(len(cell) + _BAR_CHARS for cell in cells if cell) > MAX_ROW_CHARS


def too_long(n_rows: int, where: str = "") -> str:
    """Return the warning for rows that were left out."""
    rows = "row" if n_rows == 1 else "rows"
    return f"{where}{n_rows} {rows} of more than {MAX_ROW_CHARS:,} characters left out; shorten the cells."


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


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
    """
    placed = [(row, [cell.text for cell in row]) for row in _spread(rows, budget)]
    columns = {number for _, texts in placed for number, text in enumerate(texts) if text}
    blocks: list[str] = []
    for is_frame, some in groupby(placed, key=lambda pair: len(columns) == 1 or is_too_long(map(_cell, pair[1]))):
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


def load_delimited(path: Path, source: str) -> Loaded:
    """Read a table of separated values; the separator is found out or declared, the first row is the header."""
    text, warnings = read_text(path)
    limit = csv.field_size_limit(_MAX_CELL_CHARS)
    try:
        with parsing("table"):
            if declared := _DECLARED.match(text):
                rows = _parsed(text[declared.end() :], declared[1])
            else:
                rows = _parsed(text, "\t" if path.suffix.lower() == ".tsv" else _delimiter(text))
    finally:
        csv.field_size_limit(limit)
    lines, n_too_long = markdown_table(rows)
    if not lines:
        raise LoadError(too_long(n_too_long) if n_too_long else "the table is empty; fill it or remove the file.")
    if n_too_long:
        warnings = (*warnings, too_long(n_too_long))
    return Loaded((Document(source, None, "\n".join(lines)),), warnings)


def _parsed(text: str, delimiter: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True))


def _delimiter(text: str) -> str:
    """Return the separator that most of the first rows have, and have equally often."""
    ranks: dict[str, tuple[int, bool, int]] = {}
    n_sampled: dict[str, int] = {}
    for delimiter in _DELIMITERS:
        rows = _parsed(text[:_SNIFFED_CHARS], delimiter)
        if len(text) > _SNIFFED_CHARS and len(rows) > 1:  # the end of the sample cuts the last one
            rows.pop()
        n_sampled[delimiter] = sum(map(bool, rows))
        # The most frequent number of columns beyond one, after the number of rows that have it.
        widths = Counter(len(row) for row in rows if len(row) > 1)
        n_rows, n_columns = max(((n, width) for width, n in widths.items()), default=(0, 0))
        is_sure = delimiter != "," or _DIVIDING_COMMA.search(text, 0, _SNIFFED_CHARS) is not None
        ranks[delimiter] = n_rows, is_sure, n_columns
    best = max(_DELIMITERS, key=lambda delimiter: ranks[delimiter])
    n_rows, is_sure, _ = ranks[best]
    return best if n_rows and (is_sure or 2 * n_rows > n_sampled[best]) else _NONE
