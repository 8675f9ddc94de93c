"""An upper estimate of tokens for models whose tokenizer is far away."""

from __future__ import annotations

import json
import re

from rag_lab.models.protocols import ChatRequest

_PIECES = re.compile(r"[^\W\d_]+|\d|[^\w\s]|_|\s+")
_BYTES_A_TOKEN = 3  # of one word; tokenizers of English reach four and more
_TOKENS_AROUND = 8  # what a chat template may put around a message
_TOKENS_OF_IMAGE = 2000  # of a page at 150 dpi: six tiles of Gemini's or OpenAI's, and some more


def estimated_tokens(text: str) -> int:
    """Return an upper estimate of tokens: a token for three bytes of a word, each digit, each mark, each line break."""
    return sum(_tokens(piece) for piece in _PIECES.findall(text))


def request_tokens(request: ChatRequest) -> int:
    """Return an upper estimate of the tokens that a remote model reads for `request`, schema and images included."""
    n_images = sum(len(message.images) for message in request.messages)
    return sum(estimated_tokens(text) + _TOKENS_AROUND for text in request_texts(request)) + _TOKENS_OF_IMAGE * n_images


def request_texts(request: ChatRequest) -> list[str]:
    """Return the texts that a request sends."""
    schema = [json.dumps(request.json_schema)] if request.json_schema is not None else []
    return [message.content for message in request.messages] + schema


def _tokens(piece: str) -> int:
    if piece.isspace():
        return piece.count("\n") + (len(piece) > 1)  # one space belongs to the word after it
    return -(-len(piece.encode()) // _BYTES_A_TOKEN)
