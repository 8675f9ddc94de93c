"""The lines of a PDF's page, and how they become text. The cells of a table's row stay together.

Lines are taken in the file's own order, which keeps the columns of a two-column page apart (sorting by position would
mix them). Consecutive lines that stand side by side are one row: they are joined by two spaces. A gap wider than a
line's spacing is a blank line, so that the splitter sees paragraphs. All this is judged in the direction in which the
lines run, so that a page is read alike however it is turned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

_PARAGRAPH_GAP = 0.6  # of the height of PyMuPDF's boxes; single spacing leaves about none, one and a half about 0.4
_ROW_OVERLAP = 0.5  # of the lower line's height, from which two lines stand side by side
_RUN_OF_SPACES = re.compile(r"[ \t]{3,}")

Box = tuple[float, float, float, float]  # left, top, right, bottom, in points


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a page and the box around it where the page is turned so that the line runs from left to right."""

    x0: float
    y0: float
    x1: float
    y1: float
    text: str
    direction: tuple[int, int] = (1, 0)  # in which it runs on the page: right, down
    number: tuple[int, int] = (0, 0)  # of its block on the page, and its own in the block

    @property
    def height(self) -> float:
        """Height of the box."""
        return self.y1 - self.y0


def page_lines(page: Any) -> list[Line]:
    """Return the lines of PyMuPDF's page that are not blank, in the file's own order."""
    blocks = page.get_text("dict", flags=text_flags())["blocks"]
    return [line for number, block in enumerate(blocks) for line in _lines(number, block)]


def text_flags() -> int:
    """Return PyMuPDF's flags for a page's text.

    Ligatures are spelt out, so that "file" is found where the font draws its first two letters as one.
    """
    import pymupdf

    return int(pymupdf.TEXT_PRESERVE_WHITESPACE | pymupdf.TEXT_MEDIABOX_CLIP)


def join(lines: list[Line], paragraph_gap: float = _PARAGRAPH_GAP) -> str:
    """Return lines that follow each other as text: rows joined; paragraphs apart by so much of a line's height."""
    if not lines:
        return ""
    return lines[0].text + "".join(_gap(above, line, paragraph_gap) + line.text for above, line in pairwise(lines))


def _lines(block_number: int, block: Any) -> Iterator[Line]:
    for number, line in enumerate(block.get("lines", ())):
        text = _RUN_OF_SPACES.sub("  ", "".join(span["text"] for span in line["spans"])).strip()
        if text:
            along = direction(*line["dir"])
            yield Line(*turned(line["bbox"], along), text, along, (block_number, number))


def direction(right: float, down: float) -> tuple[int, int]:
    """Return the nearest of the four directions along the page's edges; slanting text counts as level."""
    nearest = round(right), round(down)
    return (1, 0) if all(nearest) else nearest


def turned(box: Box, direction: tuple[int, int]) -> Box:
    """Return where a box stands when the page is turned so that `direction` points to the right."""
    (x0, y0, x1, y1), (right, down) = box, direction
    left, end = sorted((right * x0 + down * y0, right * x1 + down * y1))
    top, bottom = sorted((right * y0 - down * x0, right * y1 - down * x1))
    return left, top, end, bottom


def _gap(before: Line, line: Line, paragraph_gap: float) -> str:
    """Return the whitespace between two lines that follow each other in the file."""
    if before.direction != line.direction:
        return "\n\n"
    height = min(before.height, line.height)
    shared = min(before.y1, line.y1) - max(before.y0, line.y0)
    if shared > _ROW_OVERLAP * height and line.x0 >= before.x1 - height / 2:
        return "  " if line.x0 - before.x1 > height / 2 else " "
    return "\n\n" if line.y0 - before.y1 > paragraph_gap * height else "\n"
