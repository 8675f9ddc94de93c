"""Plain text tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from textwrap import wrap

_LEAST_WIDTH = 12  # of a column that is broken into lines


def text_table(header: Sequence[str], rows: Sequence[Sequence[object]], width: int = 0) -> str:
    """Return aligned columns under `header`; numbers stand to the right.

    Where the table is wider than `width` (0 is no limit), the widest columns are broken into lines.
    """
    cells = [[_text(value) for value in row] for row in (header, *rows)]
    is_number = [bool(rows) and all(map(_is_number, column[1:])) for column in zip(*cells, strict=True)]
    columns = list(zip(*cells, strict=True))
    words = [max((len(word) for cell in column for word in cell.split()), default=0) for column in columns]
    widths = _narrowed([max(map(len, column)) for column in columns], words, width)
    cells = [line for row in cells for line in _lines(row, widths)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, is_number, strict=True)
        ).rstrip()
        for line in cells
    )


def _narrowed(widths: list[int], words: list[int], width: int) -> list[int]:
    """Return `widths` with the widest column made narrower until all fit: down to its longest word, then further."""
    excess = sum(widths) + 2 * (len(widths) - 1) - width if width else 0
    for least in (words, [_LEAST_WIDTH] * len(widths)):
        while excess > 0 and (wide := [n for n, size in enumerate(widths) if size > least[n]]):
            widths[max(wide, key=lambda n: widths[n])] -= 1
            excess -= 1
    return widths


def _lines(row: list[str], widths: list[int]) -> list[list[str]]:
    broken = [wrap(cell, width) if len(cell) > width else [cell] for cell, width in zip(row, widths, strict=True)]
    return [list(line) for line in zip_longest(*broken, fillvalue="")]


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"(≤ )?[\d,.]+|[-?]|", cell) is not None


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
