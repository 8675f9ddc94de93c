"""Sections of a configuration, values by their type, and what is wrong with a value, by pydantic."""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from rag_lab.errors import unknown_name
from rag_lab.redaction import redact_value

MAX_SEED = 2_000_000_000  # the number of a repeat is added, and servers take 31 bits
_MAX_SHOWN_CHARS = 200  # of a value that is repeated
_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}


class Section(BaseModel):
    """A part of the configuration: frozen, closed to unknown keys, and with finite numbers alone."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)


def adapter_of(shape: Any) -> TypeAdapter[Any]:
    """Return what reads and writes values of a type; made once, since it takes half a millisecond."""
    return _ADAPTERS.get(shape) or _ADAPTERS.setdefault(shape, TypeAdapter(shape))


def key_of(detail: Any) -> str:
    """Return the dotted key that is wrong; `detail` is one of `ValidationError.errors()`."""
    return ".".join(str(part) for part in detail["loc"] if part != "[key]")


def complaint(detail: Any) -> str:
    """Return what the value must be: `must be a valid integer`."""
    message: str = detail["msg"]
    return message.removeprefix("Value error, ").replace("Input should", "must")


def complaint_and_value(detail: Any) -> str:
    """Return what the value must be and what it is, without secrets; a mapping, which may be long, is not repeated."""
    if isinstance(detail["input"], dict):
        return complaint(detail)
    try:
        text = repr(_without_secrets(detail["input"]))
    except ValueError:  # Python writes no number of so many digits
        text = "a number of thousands of digits"
    return f"{complaint(detail)}, got {text if len(text) <= _MAX_SHOWN_CHARS else f'{text[:_MAX_SHOWN_CHARS]}…'}"


def faults(error: ValidationError, kind: str, allowed: Iterable[str]) -> str:
    """Return what is wrong with each value, and which keys, called `kind`, are unknown."""
    return "; ".join(
        unknown_name(kind, key_of(detail), allowed)
        if detail["type"] == "extra_forbidden"
        else f"{key_of(detail)}: {complaint_and_value(detail)}"
        for detail in error.errors()
    )


def _without_secrets(value: Any) -> Any:
    if isinstance(value, str):
        return redact_value(value)
    if isinstance(value, dict):
        return {redact_value(str(key)): _without_secrets(inner) for key, inner in value.items()}
    return [_without_secrets(inner) for inner in value] if isinstance(value, list | tuple | set) else value
