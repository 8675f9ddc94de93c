"""Follows a reply token by token and knows which may come next if it is to be JSON of a schema (llguidance).

Between its tokens the JSON has the spaces that `json.dumps` writes and no others: a small model that may write spaces
freely can go on writing them to the end of its budget.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_lab.models.local.decoding.open_string import OpenString
from rag_lab.models.local.decoding.schema_words import schema_words
from rag_lab.models.local.decoding.shortest_end import shortest_end
from rag_lab.models.local.decoding.token_bytes import token_bytes
from rag_lab.models.local.decoding.token_writer import TokenWriter
from rag_lab.models.requirements import require_package
from rag_lab.redaction import one_line

_SPACES = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


class SchemaError(Exception):
    """Why a reply cannot be held to a schema, in a user's words."""


class SchemaMatcher:
    """One reply's way through a schema. `ends` are the tokens that end a reply, `barred` those it may never hold.

    Raises:
        SchemaError: if the schema, or the tokenizer, is of a kind that cannot be followed.
    """

    def __init__(
        self, schema: Mapping[str, Any], tokenizer: Any, ends: tuple[int, ...], barred: tuple[int, ...] = ()
    ) -> None:
        library = require_package("llguidance", "llguidance")
        try:
            grammar = library.LLMatcher.grammar_from_json_schema(json.dumps(dict(schema)), overrides=_SPACES)
            vocabulary, self._written, self._writer = _vocabulary(tokenizer, ends, barred)
        except ValueError as error:
            raise SchemaError(_unfit(str(error))) from error
        self._matcher = library.LLMatcher(vocabulary, grammar, log_level=0)
        if self.problem:
            raise SchemaError(self.problem)
        self._string = OpenString()
        self._words = schema_words(schema)

    @property
    def most_begun(self) -> int:
        """About how many more tokens one token may lead to."""
        return self._words.most_tokens

    @property
    def problem(self) -> str:
        """Why the schema cannot be followed, or no further, or ''."""
        return _unfit(self._matcher.get_error()) if self._matcher.is_error() else ""

    def allowed(self, width: int) -> npt.NDArray[np.bool_]:
        """Return for each of `width` tokens whether it may come next."""
        bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        known = np.unpackbits(bits, bitorder="little")[:width].astype(bool)
        return np.pad(known, (0, width - len(known)))  # a model may have room for more tokens than its tokenizer has

    def take(self, token: int) -> None:
        """Go on by a token that was allowed."""
        self._matcher.consume_token(token)
        self._string = self._string.after(self._written[token])

    def shortest_end(self, after: int | None = None) -> list[int] | None:
        """Return tokens that make the JSON whole, behind the token `after` if given, or None where no way was found."""
        ahead, string = self._matcher, self._string
        if after is not None:
            ahead, string = ahead.deep_copy(), string.after(self._written[after])
            if not ahead.consume_token(after):
                return None
        return shortest_end(ahead, self._writer, string, self._words.choices)

    @property
    def complete(self) -> bool:
        """Whether the JSON is whole and nothing can follow it."""
        return bool(self._matcher.is_stopped())


@lru_cache(maxsize=4)
def _vocabulary(tokenizer: Any, ends: tuple[int, ...], barred: tuple[int, ...]) -> tuple[Any, list[bytes], TokenWriter]:
    """Return the tokens as llguidance knows them, their bytes and their writer; making them takes half a second."""
    library = require_package("llguidance", "llguidance")
    written = token_bytes(tokenizer)
    if written is None:
        raise SchemaError(
            "The tokenizer does not say which bytes its tokens write, so no reply can be held to a schema."
        )
    special = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special} | {*ends, *barred}
    vocabulary = library.LLTokenizer(
        library.TokenizerWrapper(_Tokens(tokenizer, written, sorted(special), ends[0])),
        eos_token=list(ends),
    )
    return vocabulary, written, TokenWriter(written, special)


class _Tokens:
    """What llguidance asks of a tokenizer."""

    bos_token_id = None

    def __init__(self, tokenizer: Any, tokens: list[bytes], special: list[int], end: int) -> None:
        self.tokens = tokens
        self.special_token_ids = special
        self.eos_token_id = end
        self._tokenizer = tokenizer

    def __call__(self, text: str | bytes) -> list[int]:
        text = text if isinstance(text, str) else text.decode("utf-8", "ignore")
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids


def _unfit(reason: str) -> str:
    return f"The reply cannot be held to its schema: {one_line(reason)}"
