"""What pydantic finds, as parts of a sentence, and the strings and numbers that can be used."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import AfterValidator, ValidationError

from rag_lab._kit.complaints import complaint


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"must be text, but holds half a character at position {error.start}") from None
    return text


# A string that can be written: an escape in JSON can spell half of a surrogate pair.
Text = Annotated[str, AfterValidator(_encodable)]


def finite(text: str) -> float:
    """Return the number that `text` spells.

    Raises:
        ValueError: if it spells none, or nan or an infinity.
    """
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is not finite")
    return number


def describe(error: ValidationError) -> str:
    """Return what is wrong, every fault at once: `page: must be a valid integer; question: field required`."""
    return "; ".join(describe_one(detail) for detail in error.errors())


def describe_one(detail: Any) -> str:
    """Return one of `error.errors()`."""
    if detail["type"] == "json_invalid":
        return f"this is not JSON ({detail['ctx']['error']})"
    key = ".".join(str(part) for part in detail["loc"])
    if not key:
        return "this is no JSON object"
    message = complaint(detail)
    return f"{key}: {message[0].lower()}{message[1:]}"
