"""The fields of a trace by path: `ranked`, or `hits.bm25` for one entry of a mapping."""

from __future__ import annotations

from functools import cache
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter

from rag_lab.records import Trace


@cache
def field_type(path: str) -> TypeAdapter[Any]:
    """Return what checks a value for the field at `path`."""
    name, _, entry = path.partition(".")
    hint = get_type_hints(Trace)[name]
    return TypeAdapter(get_args(hint)[1] if entry else hint)
