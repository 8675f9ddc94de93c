"""The card of a model: its memory, foretold and measured."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rag_lab.errors import ModelError
from rag_lab.models.protocols import ChatModel, ChatRequest, Message
from rag_lab.rich_display import rich_display


@dataclass(frozen=True, slots=True)
class Cache:
    """What a transformer keeps of each token that it has read: keys and values of every layer.

    Where a model looks back only a window in some layers (Gemma 3), or shares them, this is the most.
    """

    layers: int
    kv_heads: int
    head_dim: int
    bits: float = 16.0  # a value, the scale of its block included

    def mb(self, context_tokens: int, batch: int = 1) -> float:
        """Return MiB: 2 (keys, values) x layers x heads x dimensions x tokens x sequences at a time x bits / 8."""
        values = 2 * self.layers * self.kv_heads * self.head_dim * context_tokens * batch
        return values * self.bits / 8 / 2**20

    def formula(self, context_tokens: int, batch: int = 1) -> str:
        """Return the formula with its numbers."""
        return (
            f"2 x {self.layers} layers x {self.kv_heads} heads x {self.head_dim} dimensions x "
            f"{context_tokens:,} tokens x {batch} at a time x {self.bits:g} bits"
        )


@dataclass(frozen=True, slots=True)
class Measured:
    """What a few short requests took here; None is what could not be measured."""

    tokens_per_second: float
    load_s: float | None = None
    memory_mb: float | None = None
    joules_per_token: float | None = None


@rich_display("rag_lab.notebook.views.card_view:card_view")
@dataclass(frozen=True, slots=True)
class ModelCard:
    """What is known of a model. None is what nobody says; `notes` are sentences on what is missing and why."""

    model: str  # provider:name?options
    kind: str  # chat model, embedder, ...
    parameters: int | None = None
    stored_as: str = ""  # how its weights are held: Q4_0, bfloat16, ...
    bits: float | None = None  # a weight, on average
    context_tokens: int | None = None  # as it will run
    trained_tokens: int | None = None  # the longest context that its weights are made for
    licence: str = ""
    disk_bytes: int | None = None
    weights_mb: float | None = None  # in memory
    cache: Cache | None = None
    batch: int = 1  # sequences at a time, of which the cache is kept
    thinks: bool | None = None
    sees: bool | None = None
    keeps_schema: bool | None = None
    measured: Measured | None = None
    notes: tuple[str, ...] = ()

    @property
    def cache_mb(self) -> float | None:
        """MiB of keys and values at this context and batch."""
        if self.cache is None or self.context_tokens is None:
            return None
        return self.cache.mb(self.context_tokens, self.batch)

    @property
    def memory_mb(self) -> float | None:
        """MiB that weights and cache need together; what a call computes with comes on top."""
        return None if self.weights_mb is None else self.weights_mb + (self.cache_mb or 0.0)


_READ = "The ram guides are greased every five hundred hours; the filter of the oven is changed every month. " * 12
_ASKED = ("What is greased?", "What is changed every month?", "How often are the guides greased?")
_WRITTEN_TOKENS = 48


def measure(model: ChatModel) -> Measured:
    """Ask three questions about 300 tokens of text, one after the other, and return what they took."""
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
