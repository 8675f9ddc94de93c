"""Tables as Markdown: a row is one line that begins and ends with a bar, and no splitter cuts such a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

MAX_ROW_CHARS = 20_000  # what is longer is no row that anybody reads

Span = tuple[int, int]


def markdown_table(rows: Iterable[Sequence[str]]) -> tuple[list[str], int]:
    """Return the lines of a table whose first row is its header, and how many rows were too long and left out.

    Cells lose their line ends and surplus spaces; rows and columns that are empty throughout are left out.
    """
    cleaned = [[_cell(cell) for cell in row] for row in rows]
    filled = [row for row in cleaned if any(row)]
    kept = [row for row in filled if sum(map(len, row)) <= MAX_ROW_CHARS]
    columns = [number for number in range(max(map(len, kept), default=0)) if any(_at(row, number) for row in kept)]
    lines = [_line(_at(row, number) for number in columns) for row in kept]
    if lines:
        lines.insert(1, _line("---" for _ in columns))
    return lines, len(filled) - len(kept)


def too_long(n_rows: int, where: str = "") -> str:
    """Return the warning for rows that were left out."""
    rows = "row" if n_rows == 1 else "rows"
    return f"{where}{n_rows} {rows} of more than {MAX_ROW_CHARS:,} characters left out; shorten the cells."


def row_spans(text: str) -> list[Span]:
    """Return the half-open span of each table row in `text`, from its first bar to its last, in order."""
    return list(_rows(text)) if "|" in text else []


def _rows(text: str) -> Iterator[Span]:
    start = 0
    for line in text.split("\n"):
        bare = line.strip()
        if len(bare) > 1 and bare[0] == bare[-1] == "|":
            first = start + line.index("|")
            yield first, first + len(bare)
        start += len(line) + 1


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _at(row: Sequence[str], number: int) -> str:
    return row[number] if number < len(row) else ""


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
