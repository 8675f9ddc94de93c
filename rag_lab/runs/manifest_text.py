"""A value of a manifest as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def plain_text(value: Any, absent: str) -> str:
    """Write a JSON value for people: mappings and lists on one line, `absent` where there is none."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {plain_text(inner, absent)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(plain_text(inner, absent) for inner in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return absent if value is None else str(value)
