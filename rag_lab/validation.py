"""What pydantic finds wrong with a value, as parts of a sentence. `detail` is one of `ValidationError.errors()`."""

from __future__ import annotations

from typing import Any


def key_of(detail: Any) -> str:
    """Return the dotted key that is wrong."""
    return ".".join(str(part) for part in detail["loc"] if part != "[key]")


def complaint(detail: Any) -> str:
    """Return what the value must be: `must be a valid integer`."""
    message: str = detail["msg"]
    return message.removeprefix("Value error, ").replace("Input should", "must")


def complaint_and_value(detail: Any) -> str:
    """Return what the value must be and what it is; a mapping, which may be long, is not repeated."""
    given = "" if isinstance(detail["input"], dict) else f", got {detail['input']!r}"
    return complaint(detail) + given
