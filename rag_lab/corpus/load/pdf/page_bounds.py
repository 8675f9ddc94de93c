"""How much a PDF's page unpacks to and draws, bounded: a few kilobytes can hold gigabytes of drawing commands.

Of lines that are drawn, PyMuPDF's search for tables compares each with all others.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

_MAX_STROKES = 4_000  # lines and rectangles
_MAX_CROSSINGS = 5_000  # a table of a hundred rows and fifty columns
_STEP = 3.0  # points; lines that are nearer to each other are one to PyMuPDF
_LAST = 4_800  # the last square of a side of 200 inches, the longest that PDF allows

_MAX_BYTES = 50 * 2**20  # of the drawing commands of one page
_PART = 2**16  # bytes that are unpacked at a time
_STREAM = re.compile(rb"(?<!end)stream\r?\n")


def check_content(page: Any) -> None:
    """Refuse a page (PyMuPDF's) whose drawing commands, or those of a form that it draws, unpack to more than is read.

    Raises:
        ValueError: if they do.
    """
    if any(raw and _unpacks_to_more(raw) for raw in map(page.parent.xref_stream_raw, _streams(page))):
        raise ValueError(f"the page's content unpacks to more than {_MAX_BYTES} bytes")


def holds_too_much(pdf: bytes) -> bool:
    """Tell whether a stream of a PDF, a picture included, unpacks to more than is read of a page."""
    return any(_unpacks_to_more(pdf, found.end()) for found in _STREAM.finditer(pdf))


def _streams(page: Any) -> list[int]:
    forms = [form[0] for form in page.get_xobjects()]
    return [*page.get_contents(), *forms]


def _unpacks_to_more(data: bytes, start: int = 0) -> bool:
    """Tell whether a deflated stream that begins at `start` is longer than is read; no more of it is unpacked.

    What is not deflated, or damaged, the reader finds out.
    """
    unpack = zlib.decompressobj()
    n_bytes = 0
    for place in range(start, len(data), _PART):
        with suppress(zlib.error):
            n_bytes += len(unpack.decompress(data[place : place + _PART], _MAX_BYTES))
            if n_bytes < _MAX_BYTES and not unpack.eof:
                continue
        break
    return n_bytes >= _MAX_BYTES


def has_too_many_rules(page: Any) -> bool:
    """Tell whether PyMuPDF's page draws more lines, or lines that cross at more places, than tables do."""
    strokes = [item for path in page.get_cdrawings() for item in path["items"] if item[0] in ("l", "re", "qu")]
    return len(strokes) > _MAX_STROKES or _n_crossings(strokes, max(page.rect.br)) > _MAX_CROSSINGS


def _n_crossings(strokes: list[Any], longest: float) -> int:
    """Return how many squares of a page have both an upright and a level line in them or beside them."""
    import numpy as np

    last = min(int(longest / _STEP), _LAST)
    upright, level = np.zeros((2, last + 1, last + 1), bool)
    for stroke in strokes:
        for x0, y0, x1, y1 in _sides(stroke):
            column, row = (min(max(int(middle / _STEP / 2), 0), last) for middle in (x0 + x1, y0 + y1))
            if x1 - x0 <= _STEP:
                upright[column, _reach(y0, y1)] = True
            if y1 - y0 <= _STEP:
                level[_reach(x0, x1), row] = True
    return int((upright & level).sum())


def _reach(start: float, end: float) -> slice:
    """Return the squares from one place to another, and one more on either side."""
    return slice(max(int(start / _STEP) - 1, 0), max(int(end / _STEP) + 2, 0))


def _sides(stroke: Any) -> Iterator[tuple[float, float, float, float]]:
    """Yield the boxes around a line, or around each side of a rectangle."""
    corners = stroke[1:3]
    if stroke[0] == "re":
        x0, y0, x1, y1 = stroke[1]
        corners = (x0, y0), (x1, y0), (x1, y1), (x0, y1)
    elif stroke[0] == "qu":
        upper_left, upper_right, lower_left, lower_right = stroke[1]
        corners = upper_left, upper_right, lower_right, lower_left
    for (x0, y0), (x1, y1) in zip(corners, [*corners[1:], corners[0]], strict=True):
        yield min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)
