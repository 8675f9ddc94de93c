"""The bytes that each token of a tokenizer writes, read from how the tokenizer says that it decodes."""

from __future__ import annotations

import json
import re
from typing import Any

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_WORD_START = "▁"  # how SentencePiece writes a space
_SENTENCEPIECE = {"ByteFallback", "Metaspace", "Replace"}


def token_bytes(tokenizer: Any) -> list[bytes] | None:
    """Return what each token writes, by its number, or None where the tokenizer is of neither common kind.

    Byte-level BPE (GPT-2, Qwen, SmolLM, Llama 3) has a letter for each byte; SentencePiece (Gemma, Llama 2, Mistral)
    marks spaces and has tokens for single bytes. Others join words by rules of their own. A number without a token
    writes nothing.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return None
    steps = _step_names(json.loads(backend.to_str()).get("decoder") or {})
    if "ByteLevel" in steps:
        alphabet = _byte_alphabet()
        written = {number: _byte_level(token, alphabet) for token, number in tokenizer.get_vocab().items()}
    elif steps & _SENTENCEPIECE:
        written = {number: _sentencepiece(token) for token, number in tokenizer.get_vocab().items()}
    else:
        return None
    return [written.get(number, b"") for number in range(max(written) + 1)]


def _step_names(step: dict[str, Any]) -> set[str]:
    return {step.get("type", "")}.union(*(_step_names(inner) for inner in step.get("decoders", ())))


def _byte_alphabet() -> dict[str, int]:
    """Return the byte that each letter of GPT-2's alphabet stands for: printable ones themselves, others from 256 on.

    Source: Radford et al. 2019, `encoder.py`.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


def _byte_level(token: str, alphabet: dict[str, int]) -> bytes:
    """Return the token's bytes; one with a letter outside of the alphabet was added, and is written as it stands."""
    try:
        return bytes(alphabet[letter] for letter in token)
    except KeyError:
        return token.encode()


def _sentencepiece(token: str) -> bytes:
    single = _BYTE_TOKEN.fullmatch(token)
    return bytes([int(single[1], 16)]) if single else token.replace(_WORD_START, " ").encode()
