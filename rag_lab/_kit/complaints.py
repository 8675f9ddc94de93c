"""What pydantic finds wrong with a value, as parts of a sentence. `detail` is one of `ValidationError.errors()`."""

from __future__ import annotations

from typing import Any

from rag_lab.redaction import redact_value

_LONGEST = 200  # characters of a value that is repeated


def key_of(detail: Any) -> str:
    """Return the dotted key that is wrong."""
    return ".".join(str(part) for part in detail["loc"] if part != "[key]")


def complaint(detail: Any) -> str:
    """Return what the value must be: `must be a valid integer`."""
    message: str = detail["msg"]
    return message.removeprefix("Value error, ").replace("Input should", "must")


def complaint_and_value(detail: Any) -> str:
    """Return what the value must be and what it is, without secrets; a mapping, which may be long, is not repeated."""
    given = detail["input"]
    if isinstance(given, dict):
        return complaint(detail)
    return f"{complaint(detail)}, got {_shown(_without_secrets(given))}"


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python writes no number of so many digits
        return "a number of thousands of digits"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _without_secrets(given: Any) -> Any:
    if isinstance(given, str):
        return redact_value(given)
    if isinstance(given, dict):
        return {redact_value(str(key)): _without_secrets(value) for key, value in given.items()}
    return [_without_secrets(value) for value in given] if isinstance(given, list | tuple | set) else given
