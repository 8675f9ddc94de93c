"""How numbers are written for readers: the same digits everywhere, a real minus sign, a dash where there is none."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

DASH = "–"
MINUS = "−"


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
    return MINUS + text if result < 0 and _is_nonzero(text) else text


def signed(value: Any, size: float | None = None) -> str:
    """Write a difference with its sign."""
    text = plain(value, size)
    return f"+{text}" if (number(value) or 0) > 0 and _is_nonzero(text) else text


def interval(low: Any, high: Any) -> str:
    """Write an interval, or a dash where it cannot be told."""
    return _between(plain, low, high)


def signed_interval(low: Any, high: Any) -> str:
    """Write the interval of a difference."""
    return _between(signed, low, high)


def with_interval(value: Any, low: Any, high: Any) -> str:
    """Write a difference with its interval, or that it has none: `+0.030 [+0.013 to +0.050]`."""
    if number(low) is None or number(high) is None:
        return f"{signed(value)}, without an interval"
    return f"{signed(value)} [{signed_interval(low, high)}]"


def _between(write: Callable[[Any, float], str], low: Any, high: Any) -> str:
    ends = number(low), number(high)
    if ends[0] is None or ends[1] is None:
        return DASH
    size = max(abs(ends[0]), abs(ends[1]))
    return f"{write(ends[0], size)} to {write(ends[1], size)}"


def _is_nonzero(text: str) -> bool:
    return any(digit in text for digit in "123456789")


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
