"""Names of variants: readable, and safe as names of folders."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from rag_lab._kit.digest import short_name

BASELINE = "baseline"
_MAX_LENGTH = 96
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def variant_id(changes: Mapping[str, Any], among: Collection[str]) -> str:
    """Return e.g. `hyde-always__rerank-none` for `changes`; `among` are all dotted keys that the design varies."""
    names = _short_names(sorted({*among, *changes}))
    text = "__".join(f"{names[key]}-{_slug(value)}" for key, value in changes.items())
    return short_name(text, _MAX_LENGTH, dict(changes))


def variant_label(changes: Mapping[str, Any]) -> str:
    """Return `changes` for people: `hyde = always, rerank = none`."""
    names = _short_names(sorted(changes))
    return ", ".join(f"{names[key]} = {_plain(value)}" for key, value in changes.items())


def unique(name: str, taken: Iterable[str]) -> str:
    """Return `name`, numbered if it is taken; file systems that fold case count as taken too."""
    folded = {other.casefold() for other in taken} | {BASELINE}
    number, candidate = 2, name
    while candidate.casefold() in folded:
        candidate, number = f"{name}-{number}", number + 1
    return candidate


def _short_names(keys: Collection[str]) -> dict[str, str]:
    """Return the last part of each key (the section of `section.name`), or the whole key where two would be equal."""
    short = {key: _short_name(key) for key in keys}
    names = list(short.values())
    return {key: name if names.count(name) == 1 else key.replace(".", "-") for key, name in short.items()}


def _short_name(key: str) -> str:
    section, _, last = key.rpartition(".")
    return section if last == "name" and section else last


def _slug(value: Any) -> str:
    return _UNSAFE.sub("-", _plain(value)).strip(".-") or "empty"


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(inner)}" for key, inner in value.items())
    return value if isinstance(value, str) else json.dumps(value, default=str)
