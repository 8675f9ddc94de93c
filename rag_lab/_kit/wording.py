"""How counts, lists, numbers and tables are written for readers: the same digits everywhere, a real minus sign."""

import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import zip_longest
from textwrap import wrap
from typing import Any

DASH = "–"  # where there is no number
MINUS = "−"
_MIN_WIDTH = 12  # of a column that is broken into lines


def counted(n: int, noun: str) -> str:
    """Write a count with its noun: `1 question`, `1,200 questions`."""
    return f"1 {noun}" if n == 1 else f"{n:,} {noun}s"


def listing(names: Sequence[str]) -> str:
    """Write one or more names as a list: `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def some_of(names: Sequence[str], most: int = 10) -> str:
    """Write the first of many names as a list: `a, b and 12 more`; "" where there are none."""
    rest = [f"{len(names) - most:,} more"] if len(names) > most else []
    return listing([*names[:most], *rest]) if names else ""


def letters(index: int) -> str:
    """Return A … Z, AA, AB, … for 0, 1, …"""
    head, tail = divmod(index, 26)
    return (letters(head - 1) if head else "") + chr(ord("A") + tail)


def short_verdict(verdict: str) -> str:
    """Write a verdict for a table, next to the difference that it is about: `30 questions could have shown …`."""
    return verdict.removeprefix("the data cannot tell: ")


def number(value: Any) -> float | None:
    """Return `value` as a finite float, or None where a table holds no number (None, NaN, NA)."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        return None
    return result if math.isfinite(result) else None


def plain(value: Any, size: float | None = None) -> str:
    """Write a score or a cost: three decimals below ten, fewer above, thousands separated.

    `size` decides on the decimals instead of the value, where several numbers are to look alike.
    """
    result = number(value)
    if result is None:
        return DASH
    size = abs(result) if size is None else size
    text = f"{abs(result):,.{3 if size < 10 else 1 if size < 1000 else 0}f}"
    return MINUS + text if result < 0 and text.strip("0.,") else text


def signed(value: Any, size: float | None = None) -> str:
    """Write a difference with its sign."""
    text = plain(value, size)
    return f"+{text}" if (number(value) or 0) > 0 and text.strip("0.,") else text


def interval(low: Any, high: Any, write: Callable[[Any, float], str] = plain) -> str:
    """Write an interval, or a dash where it has no ends."""
    ends = number(low), number(high)
    if ends[0] is None or ends[1] is None:
        return DASH
    size = max(abs(ends[0]), abs(ends[1]))
    return f"{write(ends[0], size)} to {write(ends[1], size)}"


signed_interval = partial(interval, write=signed)  # of a difference


def with_interval(value: Any, low: Any, high: Any) -> str:
    """Write a difference with its interval, or that it has none: `+0.030 [+0.013 to +0.050]`."""
    if number(low) is None or number(high) is None:
        return f"{signed(value)}, without an interval"
    return f"{signed(value)} [{signed_interval(low, high)}]"


def seconds(value: Any) -> str:
    """Write seconds without the unit, to two significant digits or better."""
    result = number(value)
    if result is None:
        return DASH
    decimals = 3 if result < 0.1 else 2 if result < 10 else 1 if result < 100 else 0
    return f"{result:,.{decimals}f}"


def p_value(value: Any) -> str:
    """Write a p-value; below a thousandth only that."""
    result = number(value)
    if result is None:
        return DASH
    return "< 0.001" if result < 0.001 else f"{result:.3f}"


def p_text(value: Any) -> str:
    """Write a p-value for a sentence, after the letter p: `= 0.043`, `< 0.001`."""
    text = p_value(value)
    return text if text.startswith("<") else f"= {text}"


def text_table(header: Sequence[str], rows: Sequence[Sequence[object]], width: int = 0) -> str:
    """Return aligned columns under `header`; numbers stand to the right.

    Where the table is wider than `width` (0 is no limit), the widest columns are broken into lines.
    """
    cells = [
        [f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value) for value in row]
        for row in (header, *rows)
    ]
    columns = list(zip(*cells, strict=True))
    is_right = [bool(rows) and all(re.fullmatch(r"(≤ )?[\d,.]+|[-?]|", cell) for cell in each[1:]) for each in columns]
    longest_words = [max((len(word) for cell in column for word in cell.split()), default=0) for column in columns]
    widths = [max(map(len, column)) for column in columns]
    excess = sum(widths) + 2 * (len(widths) - 1) - width if width else 0
    for least in (longest_words, [_MIN_WIDTH] * len(widths)):  # down to the longest word of each, then further
        while excess > 0 and (wide := [n for n, size in enumerate(widths) if size > least[n]]):
            widths[max(wide, key=lambda n: widths[n])] -= 1
            excess -= 1
    lines = []
    for row in cells:
        broken = [wrap(cell, size) if len(cell) > size else [cell] for cell, size in zip(row, widths, strict=True)]
        for line in zip_longest(*broken, fillvalue=""):
            parts = zip(line, widths, is_right, strict=True)
            lines.append("  ".join(c.rjust(size) if right else c.ljust(size) for c, size, right in parts).rstrip())
    return "\n".join(lines)
