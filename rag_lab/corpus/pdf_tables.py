"""PDF files with their tables as Markdown, where PyMuPDF finds the lines of one; the rest as `load_pdf` reads it.

PyMuPDF says where the cells are; the words in them are put together here, since its own reading of a cell loses spaces
with some fonts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rag_lab.corpus.base import Loaded
from rag_lab.corpus.pdf import Line, join, load_pages, page_lines
from rag_lab.corpus.tables import markdown_table

_MAX_DRAWINGS = 20_000  # a page with more lines is a technical drawing: looking for tables takes minutes

_Box = tuple[float, float, float, float]


def load_pdf_tables(path: Path, source: str) -> Loaded:
    """Read a PDF as `load_pdf` does, with each table that has ruled or filled cells as Markdown in its place.

    Raises:
        LoadError: if the file is empty, corrupt, encrypted, too long, or holds no text at all.
    """
    return load_pages(path, source, _page_text)


def _page_text(page: Any) -> str:
    lines, tables = page_lines(page), list(_tables(page))
    blocks: list[str] = []
    run: list[Line] = []
    waiting = dict(enumerate(tables))
    for line in lines:
        number = next((n for n, (box, _) in enumerate(tables) if _holds(box, line)), None)
        if number is None:
            run.append(line)
        elif number in waiting:  # the table stands where its first line stood
            blocks += [join(run), waiting.pop(number)[1]]
            run = []
    return "\n\n".join(block for block in [*blocks, join(run)] if block)


def _tables(page: Any) -> Iterator[tuple[_Box, str]]:
    """Yield the box and the Markdown of each table with more than one row and column."""
    if len(page.get_cdrawings()) > _MAX_DRAWINGS:
        return
    words = page.get_text("words")
    for table in page.find_tables().tables:
        rows = [[_cell(box, words) for box in row.cells] for row in table.rows]
        lines, n_too_long = markdown_table(rows)
        if len(lines) > 2 and table.col_count > 1 and not n_too_long:
            yield tuple(table.bbox), "\n".join(lines)


def _cell(box: _Box | None, words: Sequence[tuple[Any, ...]]) -> str:
    """Return the words whose middle is in a cell; "" for the part of a merged cell that belongs to its neighbour."""
    return " ".join(word[4] for word in words if box and _is_inside(box, *word[:4]))


def _holds(box: _Box, line: Line) -> bool:
    return _is_inside(box, line.x0, line.y0, line.x1, line.y1)


def _is_inside(box: _Box, x0: float, y0: float, x1: float, y1: float) -> bool:
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]
