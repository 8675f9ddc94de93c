"""Contracts of the three kinds of model: chat, embedding, pair scoring; thinking, and vectors of length one."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from rag_lab.records import MachineUse

Vectors = npt.NDArray[np.float32]
TextKind = Literal["document", "query"]  # what a text is for an embedding model: some put other words before each
_LARGEST = 127  # of int8
SAMPLING = ("top_p", "top_k", "min_p")  # settings of a request beside its temperature
_OPEN, _CLOSE = "<think>", "</think>"
# Hears the text so far of one reply while it is written; models that cannot stream leave it alone.
LISTENER: ContextVar[Callable[[str], object] | None] = ContextVar("listener", default=None)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str
    images: tuple[bytes, ...] = ()  # PNG files, shown after the text; only some providers' models see them


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One call of a chat model. `json_schema` asks for constrained output where the backend can give it.

    A sampling setting that is None is left to the model's card.
    """

    messages: tuple[Message, ...]
    max_tokens: int = 256  # of the reply, thinking left out
    temperature: float = 0.0
    seed: int = 0
    json_schema: Mapping[str, Any] | None = None
    thinking_tokens: int = 0  # budget of thinking before the reply; 0 asks for a reply without
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None

    @property
    def thinking(self) -> bool:
        """Whether the model is asked to think."""
        return self.thinking_tokens > 0

    @property
    def sampling(self) -> dict[str, float]:
        """Those settings of `SAMPLING` that it sets, by name."""
        return {name: value for name in SAMPLING if (value := getattr(self, name)) is not None}

    @property
    def most_tokens_out(self) -> int:
        """The most tokens that the model may write, thinking included."""
        return self.thinking_tokens + self.max_tokens


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A model's reply, or the reason why there is none (`error` is empty where there is one)."""

    text: str = ""
    thinking: str = ""
    tokens_in: int = 0
    tokens_out: int = 0  # thinking included
    seconds: float = 0.0
    cost_usd: float = 0.0
    truncated: bool = False  # stopped by max_tokens
    error: str = ""
    transient: bool = False  # another attempt may cure the error
    asked: bool = True  # False: a model that was given up was not called
    thinking_tokens: int = 0  # of `tokens_out`
    truncated_tokens: int = 0  # of the prompt, which the model never read
    machine: MachineUse | None = None  # what it took of this machine, where it computes here

    @property
    def has_thought(self) -> bool:
        """Whether the model thought before its reply, be the thought shown or only counted."""
        return bool(self.thinking or self.thinking_tokens)


@runtime_checkable
class Concurrent(Protocol):
    """A model that gains nothing from batches: `concurrency` calls at a time are welcome, from as many threads."""

    concurrency: int


class ChatModel(Protocol):
    """A chat model. Loading happens on the first call, never in the constructor."""

    constrains_json: bool  # whether `json_schema` is enforced while decoding
    context_tokens: int  # how much it can read and write together

    def identity(self) -> Mapping[str, Any]:
        """Whatever changes the output, as JSON values: provider, name, weights' digest, quantization; no secrets."""

    def generate(self, requests: Sequence[ChatRequest]) -> list[ChatReply]:
        """Return one reply for each request, in order; a failed request is a reply with `error`, never an exception.

        A `ModelError` says that the model cannot be used at all (package, key, GPU or weights missing).
        """

    def count_tokens(self, text: str) -> int:
        """Return how many tokens the model reads for `text` (an upper estimate where the provider does not tell)."""


class Embedder(Protocol):
    """An embedding model. Rows are unit vectors, so that a dot product is the cosine."""

    def identity(self) -> Mapping[str, Any]:
        """Whatever changes the vectors, as JSON values."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return (n_texts, dim) unit vectors of passages, in order."""

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return (n_texts, dim) unit vectors of questions, in order."""


class EmbedsByKind:
    """Both methods of an `Embedder` by one, which is told what the texts are."""

    __slots__ = ()
    _embed: Callable[[TextKind, Sequence[str]], Vectors]

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return (n_texts, dim) unit vectors of passages, in order."""
        return self._embed("document", texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return (n_texts, dim) unit vectors of questions, in order."""
        return self._embed("query", texts)


class PairScorer(Protocol):
    """Scores how well a passage answers a question."""

    def identity(self) -> Mapping[str, Any]:
        """Whatever changes the scores, as JSON values."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return one score for each (question, passage), in order; larger is more relevant."""


def as_int8(rows: Vectors) -> tuple[npt.NDArray[np.int8], Vectors]:
    """Return vectors as int8, each by its largest number, and what one of these numbers counts, (n, 1)."""
    largest = np.maximum(np.abs(rows).max(axis=1, keepdims=True), np.float32(1e-12))  # a row of zeros stays one
    return np.round(rows / largest * _LARGEST).astype(np.int8), largest / np.float32(_LARGEST)


def unit_vectors(rows: Vectors) -> Vectors:
    """Return the (n, dim) rows scaled to length one; a row of zeros stays zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Vectors = (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled


def split_thinking(text: str) -> tuple[str, str]:
    """Return (text without thinking, thinking), both stripped of surrounding whitespace.

    A closing mark alone ends thinking that the prompt had opened; thinking that was never closed leaves no text. A text
    that is a JSON object is all text, whatever marks stand in its strings.

    Example:
        >>> split_thinking("<think>two of them</think> It is 4.")
        ('It is 4.', 'two of them')
    """
    if text.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            if isinstance(json.loads(text, strict=False), dict):
                return text.strip(), ""
    thoughts: list[str] = []
    before, closed, after = text.partition(_CLOSE)
    if closed and _OPEN not in before:
        thoughts, text = [before], after
    kept: list[str] = []
    while True:
        before, opened, rest = text.partition(_OPEN)
        kept.append(before)
        if not opened:
            break
        thought, _, text = rest.partition(_CLOSE)
        thoughts.append(thought)
    return "".join(kept).strip(), "\n".join(part.strip() for part in thoughts if part.strip())


def with_least_thinking(model: object, request: ChatRequest) -> ChatRequest:
    """Return `request` with no less thinking than `model` does at the least (`least_thinking_tokens`; else none)."""
    least: int = getattr(model, "least_thinking_tokens", 0)
    return replace(request, thinking_tokens=least) if request.thinking_tokens < least else request
