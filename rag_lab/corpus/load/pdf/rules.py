"""How much a PDF's page draws: charts, maps and graph paper hold more than the search for tables can bear.

PyMuPDF compares each line with all others, and each place where lines cross with all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

_MAX_STROKES = 4_000  # lines and rectangles
_MAX_CROSSINGS = 5_000  # a table of a hundred rows and fifty columns
_STEP = 3.0  # points; lines that are nearer to each other are one to PyMuPDF
_LAST = 4_800  # the last square of a side of 200 inches, the longest that PDF allows


def has_too_many_rules(page: Any) -> bool:
    """Tell whether PyMuPDF's page draws more lines, or lines that cross at more places, than tables do."""
    strokes = [item for path in page.get_cdrawings() for item in path["items"] if item[0] in ("l", "re", "qu")]
    return len(strokes) > _MAX_STROKES or _n_crossings(strokes, max(page.rect.br)) > _MAX_CROSSINGS


def _n_crossings(strokes: list[Any], longest: float) -> int:
    """Return how many squares of a page have both an upright and a level line in them or beside them."""
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
