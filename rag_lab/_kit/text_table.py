"""Plain text tables."""

from __future__ import annotations

import re
from collections.abc import Sequence


def text_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return aligned columns under `header`; numbers stand to the right."""
    cells = [[_text(value) for value in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    is_number = [bool(rows) and all(map(_is_number, column[1:])) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, is_number, strict=True)
        ).rstrip()
        for line in cells
    )


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"(≤ )?[\d,.]+|[-?]|", cell) is not None


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
