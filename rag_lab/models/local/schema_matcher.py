"""Tells which token may come next where a reply is to be JSON of a schema (llguidance).

Between its tokens the JSON has the spaces that `json.dumps` writes and no others: a small model that may write spaces
freely can go on writing them to the end of its budget.
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_lab.models.requirements import require_package
from rag_lab.redaction import one_line

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_WORD_START = "▁"  # how SentencePiece writes a space
_SENTENCEPIECE = {"ByteFallback", "Metaspace", "Replace"}
_SPACES = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


def token_bytes(tokenizer: Any) -> list[bytes] | None:
    """Return what each token writes, by its number, or None where the tokenizer is of neither common kind.

    Byte-level BPE (GPT-2, Qwen, SmolLM, Llama 3) has a letter for each byte; SentencePiece (Gemma, Llama 2, Mistral)
    marks spaces and has tokens for single bytes. Others join words by rules of their own. A number without a token
    writes nothing.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return None
    todo, steps = [json.loads(backend.to_str()).get("decoder") or {}], set()
    while todo:
        step = todo.pop()
        steps.add(step.get("type", ""))
        todo += step.get("decoders", ())
    # GPT-2's alphabet: printable bytes are themselves, others from 256 on (Radford et al. 2019, `encoder.py`)
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}
    written: dict[int, bytes] = {}
    for token, number in tokenizer.get_vocab().items():
        if "ByteLevel" in steps:  # one with a letter outside of the alphabet was added, and is written as it stands
            is_added = any(letter not in alphabet for letter in token)
            written[number] = token.encode() if is_added else bytes(alphabet[letter] for letter in token)
        elif steps & _SENTENCEPIECE:
            single = _BYTE_TOKEN.fullmatch(token)
            written[number] = bytes([int(single[1], 16)]) if single else token.replace(_WORD_START, " ").encode()
        else:
            return None
    return [written.get(number, b"") for number in range(max(written) + 1)]


class SchemaError(Exception):
    """Why a reply cannot be held to a schema, in a user's words."""


class SchemaMatcher:
    """One reply's way through a schema. `ends` are the tokens that end a reply, `barred` those it may never hold."""

    def __init__(
        self, schema: Mapping[str, Any], tokenizer: Any, ends: tuple[int, ...], barred: tuple[int, ...] = ()
    ) -> None:
        library = require_package("llguidance", "llguidance")
        try:
            grammar = library.LLMatcher.grammar_from_json_schema(json.dumps(dict(schema)), overrides=_SPACES)
            vocabulary = _vocabulary(tokenizer, ends, barred)
        except ValueError as error:
            raise SchemaError(_unfit(str(error))) from error
        self._matcher = library.LLMatcher(vocabulary, grammar, log_level=0)
        if self.problem:
            raise SchemaError(self.problem)

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

    @property
    def complete(self) -> bool:
        """Whether the JSON is whole and nothing can follow it."""
        return bool(self._matcher.is_stopped())


@lru_cache(maxsize=4)
def _vocabulary(tokenizer: Any, ends: tuple[int, ...], barred: tuple[int, ...]) -> Any:
    """Return the tokens as llguidance knows them; to build them takes half a second."""
    library = require_package("llguidance", "llguidance")
    written = token_bytes(tokenizer)
    if written is None:
        raise SchemaError(
            "The tokenizer does not say which bytes its tokens write, so no reply can be held to a schema."
        )
    special = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special} | {*ends, *barred}
    return library.LLTokenizer(
        library.TokenizerWrapper(_Tokens(tokenizer, written, sorted(special), ends[0])),
        eos_token=list(ends),
    )


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
