"""Measures a chat model with a few short requests: tokens a second, memory, energy."""

from __future__ import annotations

import time

from rag_lab.errors import ModelError
from rag_lab.models.card.model_card import Measured
from rag_lab.models.protocols import ChatModel, ChatRequest, Message

_READ = "The ram guides are greased every five hundred hours; the filter of the oven is changed every month. " * 12
_ASKED = ("What is greased?", "What is changed every month?", "How often are the guides greased?")
_WRITTEN_TOKENS = 48


def measure(model: ChatModel) -> Measured:
    """Ask three questions about 300 tokens of text, one after the other, and return what they took.

    Raises:
        ModelError: if the model cannot be used, or answers none of them.
    """
    model.generate([_request("Say hello.")])  # loads it; compiling and caching are none of its speed
    started = time.perf_counter()
    replies = [reply for text in _ASKED for reply in model.generate([_request(_READ + text)])]
    seconds = time.perf_counter() - started
    if failed := next((reply.error for reply in replies if reply.error), ""):
        raise ModelError(f"The model answered no request: {failed}")
    written = sum(reply.tokens_out for reply in replies)
    used = replies[-1].machine
    joules = [reply.machine.joules for reply in replies if reply.machine and reply.machine.joules is not None]
    return Measured(
        tokens_per_second=written / seconds,
        load_s=used.load_s if used else None,
        memory_mb=used.memory_mb if used else None,
        joules_per_token=sum(joules) / written if joules and written else None,
    )


def _request(text: str) -> ChatRequest:
    return ChatRequest((Message("user", text),), max_tokens=_WRITTEN_TOKENS)
