"""The words that a schema itself names: members and the texts that it allows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_BESIDE_A_NAME = 6  # tokens: a comma, quotes, a colon and an empty value
_BESIDE_ALL = 8  # what an escape, a character or a number that was begun needs


@dataclass(frozen=True, slots=True)
class SchemaWords:
    """`choices` can end a string that must be one of several: required names first, then texts, shortest first.

    `most_tokens` is what JSON that has each word once takes at most, in letters: about what one token can begin.
    """

    choices: tuple[bytes, ...]
    most_tokens: int


def schema_words(schema: Mapping[str, Any]) -> SchemaWords:
    """Return the words of a schema."""
    parts = list(_parts(schema))
    required = [name for part in parts for name in _texts(part.get("required"))]
    texts = [text for part in parts for text in _texts([part.get("const"), *_listed(part.get("enum"))])]
    names = [name for part in parts if isinstance(part.get("properties"), Mapping) for name in part["properties"]]
    choices = dict.fromkeys([*sorted(required, key=len), *sorted(texts, key=len)])
    most = sum(len(_quoted(word)) + _BESIDE_A_NAME for word in [*names, *texts])
    return SchemaWords(tuple(_quoted(word)[1:] for word in choices), most + _BESIDE_ALL)


def _parts(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
    for child in value.values() if isinstance(value, Mapping) else _listed(value):
        yield from _parts(child)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(value: Any) -> list[str]:
    return [text for text in _listed(value) if isinstance(text, str)]


def _quoted(word: str) -> bytes:
    return json.dumps(word, ensure_ascii=False).encode()
