"""An upper estimate of tokens for models whose tokenizer is far away."""

from __future__ import annotations

import re

_PIECES = re.compile(r"[^\W\d_]+|\d|[^\w\s]|_|\s+")
_BYTES_A_TOKEN = 3  # of one word; tokenizers of English reach four and more


def estimated_tokens(text: str) -> int:
    """Return an upper estimate of tokens: a token for three bytes of a word, each digit, each mark, each line break."""
    return sum(_tokens(piece) for piece in _PIECES.findall(text))


def _tokens(piece: str) -> int:
    if piece.isspace():
        return piece.count("\n") + (len(piece) > 1)  # one space belongs to the word after it
    return -(-len(piece.encode()) // _BYTES_A_TOKEN)
