"""Models without weights: a chat model that follows a script, an embedder and a scorer that compare words."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rag_lab.errors import ModelError
from rag_lab.models.protocols import ChatReply, ChatRequest, Vectors, unit_vectors

Reply = str | ChatReply
_WORD = re.compile(r"\w+")


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


@dataclass
class ScriptedChat:
    """Replies from a list, in order, or from a function of the request. `requests` holds what was asked.

    A string becomes a reply whose tokens are its words. A list that runs out is a `ModelError`.
    """

    script: Sequence[Reply] | Callable[[ChatRequest], Reply]
    name: str = "script"
    constrains_json: bool = False
    context_tokens: int = 4096
    requests: list[ChatRequest] = field(default_factory=list)

    def identity(self) -> Mapping[str, Any]:
        """Return the name: two scripts that must not share remembered results need two names."""
        return {"provider": "scripted", "name": self.name}

    def generate(self, requests: Sequence[ChatRequest]) -> list[ChatReply]:
        """Return the next reply of the script for each request."""
        replies = []
        for request in requests:
            position = len(self.requests)
            self.requests.append(request)
            if callable(self.script):
                reply = self.script(request)
            elif position < len(self.script):
                reply = self.script[position]
            else:
                raise ModelError(f"The script has {len(self.script)} replies, and one more was asked for.")
            if isinstance(reply, str):
                tokens_in = sum(self.count_tokens(message.content) for message in request.messages)
                reply = ChatReply(text=reply, tokens_in=tokens_in, tokens_out=self.count_tokens(reply))
            replies.append(reply)
        return replies

    def count_tokens(self, text: str) -> int:
        """Return the number of words."""
        return len(_words(text))


@dataclass
class HashEmbedder:
    """Unit vectors of hashed words: texts that share words are near, the same on every machine.

    `documents` and `queries` hold what was embedded, in order.
    """

    dim: int = 256
    documents: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)

    def identity(self) -> Mapping[str, Any]:
        """Return the size of the vectors."""
        return {"provider": "hash", "dim": self.dim}

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return (n_texts, dim) unit vectors; a text without words gets the last axis."""
        self.documents += texts
        return self._embed(texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return (n_texts, dim) unit vectors; see `embed_documents`."""
        self.queries += texts
        return self._embed(texts)

    def _embed(self, texts: Sequence[str]) -> Vectors:
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in _words(text):
                row[int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big") % self.dim] += 1
            if not row.any():
                row[-1] = 1
        return unit_vectors(rows)


@dataclass
class OverlapScorer:
    """The share of the question's distinct words that stand in the passage; 0 for a question without words."""

    pairs: list[tuple[str, str]] = field(default_factory=list)

    def identity(self) -> Mapping[str, Any]:
        """Return the provider alone: there is nothing to set."""
        return {"provider": "overlap"}

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return one score in [0, 1] for each (question, passage), in order."""
        self.pairs += pairs
        words = [(set(_words(question)), set(_words(passage))) for question, passage in pairs]
        return [len(asked & read) / len(asked) if asked else 0.0 for asked, read in words]
