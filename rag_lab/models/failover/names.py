"""How several models for one role are written: `first | second`, or in YAML {failover: [first, second]}."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rag_lab.errors import ModelError

KEY = "failover"
_BETWEEN = re.compile(r"(?:^|\s+)\|(?:\s+|$)")  # blanks around it: a parameter of one's own model may hold the mark


def alternatives(text: str) -> tuple[str, ...]:
    """Return the models that `text` names, the preferred one first; most often one."""
    return tuple(name.strip() for name in _BETWEEN.split(text))


def is_failover(text: str) -> bool:
    """Tell whether `text` names more than one model."""
    return len(alternatives(text)) > 1


def written(names: Iterable[str]) -> str:
    """Return models as one text, the preferred one first."""
    return " | ".join(names)


def from_yaml(value: Any) -> Any:
    """Return {failover: [first, second]} as `first | second`, and any other value as it is.

    Raises:
        ModelError: for a mapping of another shape.
    """
    if not isinstance(value, Mapping):
        return value
    names = value.get(KEY)
    listed = [name.strip() for name in names if isinstance(name, str)] if isinstance(names, list | tuple) else []
    if set(value) != {KEY} or len(listed) != len(names or ()) or len({*listed}) < max(2, len(listed)):
        raise ModelError("several models for one role are written {failover: [first, second]}, each by provider:name")
    return written(listed)
