"""JSON of files that somebody else may have written: what is too deep, or no number, is refused as other faults are."""

from __future__ import annotations

import json
from typing import Any

_MOST = 1e30  # that a number is on either side of zero: a run writes no larger one, and sums of these are numbers


def strict_json(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: if it is none, is nested too deep, or holds a number that is infinite, none, or far too large.
    """
    try:
        return json.loads(text, parse_constant=_number, parse_float=_number, parse_int=_whole)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _number(text: str) -> float:
    number = float(text)
    if not -_MOST < number < _MOST:  # a NaN is not, either
        raise ValueError(f"{text:.20} is no number that can be")
    return number


def _whole(text: str) -> int:
    _number(text)
    return int(text)
