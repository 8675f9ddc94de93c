"""Models as kernels of a sweep see them: what needs no weights is done here, a process that holds them is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from rag_lab._kit.digest import digest
from rag_lab._kit.registry import Kind
from rag_lab.models.host import ask
from rag_lab.models.host.messages import (
    Sent,
    replies_received,
    requests_sent,
    vectors_received,
)
from rag_lab.models.host.place import meeting_place
from rag_lab.models.limits.read_limit import Kind as TextKind
from rag_lab.models.limits.read_limit import Pair
from rag_lab.models.local.holds_weights import HoldsWeights
from rag_lab.models.protocols import ChatReply, ChatRequest, Concurrent, Vectors
from rag_lab.models.providers import CHAT_MODELS, EMBEDDERS

_TEXTS_COUNTED = 65_536
_NAME_LETTERS = 16


def hosted(kind: Kind, model: str, made: Any) -> Any:
    """Return the model `made` of this kind and name, asked in the process that holds its weights for all kernels.

    It is `made` itself where its weights are elsewhere, or where the environment names no place to meet.
    """
    folder = meeting_place()
    if folder is None or not isinstance(made, HoldsWeights):
        return made
    asked = _Asked(folder, kind.name, model, made)
    if kind is CHAT_MODELS:
        return HostedChat(made, asked)
    return HostedEmbedder(made, asked) if kind is EMBEDDERS else HostedScorer(made, asked)


class _Asked:
    """One model in the process that holds it."""

    def __init__(self, folder: Path, kind: str, model: str, local: HoldsWeights) -> None:
        self._folder, self._kind, self._model, self._local = folder, kind, model, local

    def __call__(self, do: str, given: Sent) -> Sent:
        name = digest(self._local.weights_held)[:_NAME_LETTERS]
        return ask.ask(self._folder, name, self._kind, self._model, Sent({**given.head, "do": do}, given.parts))


class HostedChat:
    """A local chat model; `local` never loads its weights."""

    def __init__(self, local: Any, asked: _Asked) -> None:
        self.local = local
        self._asked = asked
        self.constrains_json: bool = local.constrains_json
        if isinstance(local, Concurrent):
            self.concurrency = local.concurrency
        self._counted = lru_cache(_TEXTS_COUNTED)(self._count)

    def __repr__(self) -> str:
        return repr(self.local)

    @property
    def context_tokens(self) -> int:
        """How much the model can read and write together."""
        return int(self.local.context_tokens)

    def identity(self) -> Mapping[str, Any]:
        """Return the local model's identity: where it computes changes no reply."""
        found: Mapping[str, Any] = self.local.identity()
        return found

    def generate(self, requests: Sequence[ChatRequest]) -> list[ChatReply]:
        """Return one reply for each request, in order; see `ChatModel`."""
        return replies_received(self._asked("generate", requests_sent(requests))) if requests else []

    def count_tokens(self, text: str) -> int:
        """Return the exact number of tokens; only where the tokenizer is unknown the process counts."""
        return int(self.local.count_tokens(text)) if self.local.counts_alone else self._counted(text)

    def _count(self, text: str) -> int:
        return int(self._asked("count_tokens", Sent({"text": text})).head["tokens"])


class HostedEmbedder:
    """A local embedding model; `local` never loads its weights."""

    def __init__(self, local: Any, asked: _Asked) -> None:
        self.local = local
        self._asked = asked

    def __repr__(self) -> str:
        return repr(self.local)

    def identity(self) -> Mapping[str, Any]:
        """Return the local model's identity: where it computes changes no vector."""
        found: Mapping[str, Any] = self.local.identity()
        return found

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return (n_texts, dim) unit vectors of passages, in order; see `Embedder`."""
        return self._embed("embed_documents", texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return (n_texts, dim) unit vectors of questions, in order; see `Embedder`."""
        return self._embed("embed_queries", texts)

    @property
    def most_tokens(self) -> int | None:
        """The most tokens that it reads; None before its weights are here."""
        found: int | None = self.local.most_tokens
        return found

    def text_tokens(self, texts: Sequence[str], kind: TextKind) -> list[int]:
        """Return how many tokens each text has for the model."""
        found: list[int] = self.local.text_tokens(texts, kind)
        return found

    def _embed(self, do: str, texts: Sequence[str]) -> Vectors:
        return np.ascontiguousarray(vectors_received(self._asked(do, Sent({"texts": list(texts)}))))


class HostedScorer:
    """A local scorer of pairs; `local` never loads its weights."""

    def __init__(self, local: Any, asked: _Asked) -> None:
        self.local = local
        self._asked = asked

    def __repr__(self) -> str:
        return repr(self.local)

    def identity(self) -> Mapping[str, Any]:
        """Return the local model's identity: where it computes changes no score."""
        found: Mapping[str, Any] = self.local.identity()
        return found

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """Return one score for each (question, passage), in order; see `PairScorer`."""
        return (
            list(self._asked("score", Sent({"pairs": [list(pair) for pair in pairs]})).head["scores"]) if pairs else []
        )

    @property
    def most_tokens(self) -> int | None:
        """The most tokens that it reads, of what `pair_tokens` counts; None where that is not known."""
        found: int | None = self.local.most_tokens
        return found

    def pair_tokens(self, pairs: Sequence[Pair]) -> list[int]:
        """Return how many tokens of each pair count towards its limit."""
        found: list[int] = self.local.pair_tokens(pairs)
        return found
