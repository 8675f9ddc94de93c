"""A short way to the end of JSON of a schema, from anywhere in it.

What the schema forces is written; where it leaves a choice, what closes goes first, then what is required, then any
value. It is not always the shortest way, but one that can be gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rag_lab.models.local.decoding.open_string import OpenString
from rag_lab.models.local.decoding.token_writer import TokenWriter

_MOST_BYTES = 4096
_OUTSIDE = tuple(bytes([byte]) for byte in b'}],"1234567890[{tfn-:. ')
_CHARACTER = (b"\x80", b"\x90", b"\xa0")  # one of these can follow the first byte of any character of several
_INSIDE = (b"a", b"0", *_CHARACTER)


def shortest_end(matcher: Any, writer: TokenWriter, string: OpenString, words: tuple[bytes, ...]) -> list[int] | None:
    """Return the tokens that end what `matcher`, one of llguidance, has followed, or None where no way was found.

    `string` is where it is, and `words` are what may end a string that must be one of several.
    """
    ahead, text, spelled = matcher.deep_copy(), b"", list[int]()
    while not ahead.is_accepting():
        step = next(_fitting(ahead, writer, _steps(ahead, string, words)), None)
        if step is None or len(text) > _MOST_BYTES:
            return None
        written, tokens = step
        ahead.consume_tokens(tokens)
        text, spelled, string = text + written, spelled + tokens, string.after(written)
    short = writer.written(text)
    return short if len(short) == matcher.validate_tokens(short) else spelled


def _steps(ahead: Any, string: OpenString, words: tuple[bytes, ...]) -> Iterator[bytes]:
    yield ahead.compute_ff_bytes()
    if not string.is_open:
        yield from _OUTSIDE
        return
    yield b"n" if string.escaped else b'"'
    yield b"."  # a text that may not be empty, where anything goes
    yield from words
    yield from _INSIDE
    yield from (bytes([byte]) for byte in range(256))


def _fitting(ahead: Any, writer: TokenWriter, steps: Iterator[bytes]) -> Iterator[tuple[bytes, list[int]]]:
    """Yield those of `steps` that the schema allows, with their tokens."""
    for step in steps:
        tokens = writer.spelled(step)
        if tokens and ahead.validate_tokens(tokens) == len(tokens):
            yield step, tokens
