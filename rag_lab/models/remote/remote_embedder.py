"""What embedding models behind a server have in common: batches, retries, prefixes, unit vectors."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from rag_lab.errors import ModelError
from rag_lab.memory.paces import Rates
from rag_lab.models.limits.read_limit import Kind
from rag_lab.models.protocols import Vectors
from rag_lab.models.remote.patience import Patience
from rag_lab.models.remote.requests import CallFailed, RetryPolicy, in_parallel
from rag_lab.models.token_estimate import estimated_tokens
from rag_lab.models.unit_vectors import unit_vectors

_AROUND = 2  # tokens that a model may put around a text


class RemoteEmbedder(ABC):
    """An embedder that sends at most `batch_size` texts in one call, `concurrency` calls at a time.

    Args:
        name: of the model.
        batch_size: texts in one call.
        concurrency: calls at a time.
        max_attempts: of one call.
        timeout_s: of one attempt.
        document_prefix: what the model wants before a passage, such as `search_document: `.
        query_prefix: what it wants before a question.
        context: the most tokens of one text that it shall read, where a provider lets that be chosen or told.
        dimensions: how many numbers a vector shall have, where the model can choose.
        requests_per_minute: that the server takes of all processes together, where that is known.
        tokens_per_minute: that it takes, likewise.
    """

    provider: str

    def __init__(
        self,
        name: str,
        *,
        batch_size: int,
        concurrency: int,
        max_attempts: int,
        timeout_s: float,
        document_prefix: str = "",
        query_prefix: str = "",
        context: int | None = None,
        dimensions: int | None = None,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
    ) -> None:
        self.name = name
        self.batch_size = batch_size
        self.concurrency = concurrency
        self.retry = RetryPolicy(max_attempts, rates=Rates(requests_per_minute, tokens_per_minute))
        self.timeout_s = timeout_s
        self.document_prefix = document_prefix
        self.query_prefix = query_prefix
        self.context = context
        self.dimensions = dimensions

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def identity(self) -> Mapping[str, Any]:
        """Return provider and name, what is given of prefixes, window and dimensions, and what else a provider adds.

        Never the key. A window may change no vector, but it changes what is counted as not read.
        """
        given = {
            "document_prefix": self.document_prefix,
            "query_prefix": self.query_prefix,
            "context": self.context,
            "dimensions": self.dimensions,
        }
        named = {key: value for key, value in given.items() if value not in ("", None)}
        return {"provider": self.provider, "name": self.name, **named}

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return (n_texts, dim) unit vectors of passages, in order.

        Raises:
            ModelError: if the package or key is missing, or a batch fails after every attempt.
        """
        return self._embed([self.document_prefix + text for text in texts], is_query=False)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return (n_texts, dim) unit vectors of questions, in order; see `embed_documents`."""
        return self._embed([self.query_prefix + text for text in texts], is_query=True)

    @property
    def priced(self) -> bool:
        """Whether what it reads costs money: not what a server of one's own reads."""
        return True

    @property
    def most_tokens(self) -> int | None:
        """The most tokens of one text that the model reads; None where that is not known, or longer texts are refused.

        Providers say what they know.
        """
        return None

    def text_tokens(self, texts: Sequence[str], kind: Kind) -> list[int]:
        """Return an upper estimate of each text's tokens, its prefix included: the tokenizer is the server's."""
        prefix = self.document_prefix if kind == "document" else self.query_prefix
        return [estimated_tokens(prefix + text) + _AROUND for text in texts]

    @abstractmethod
    def build(self) -> Any:
        """Return the client, on first use."""

    @abstractmethod
    def embed(self, client: Any, texts: list[str], *, is_query: bool) -> Sequence[Sequence[float]]:
        """Return one vector for each text of a batch, of any length, asking once."""

    @cached_property
    def _client(self) -> Any:
        return self.build()

    @cached_property
    def _patience(self) -> Patience:
        return Patience({**self.identity(), "kind": "embedding"})

    def _embed(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        client, patience = self._client, self._patience  # a missing key is one error, before any thread starts

        def embed(batch: Sequence[str]) -> Sequence[Sequence[float]]:
            tokens = sum(map(estimated_tokens, batch))
            return self.retry.call(
                repr(self), lambda: self.embed(client, list(batch), is_query=is_query), patience, tokens
            )

        batches = [texts[start : start + self.batch_size] for start in range(0, len(texts), self.batch_size)]
        try:
            rows = list(itertools.chain.from_iterable(in_parallel(embed, batches, self.concurrency)))
        except CallFailed as error:
            raise ModelError(f"{self!r}: {error}; try again later.") from None
        if len(rows) != len(texts):
            raise ModelError(f"{self!r} returned {len(rows)} vectors for {len(texts)} texts.")
        if len({len(row) for row in rows}) > 1:
            raise ModelError(f"{self!r} returned vectors of different lengths; ask one server with one model.")
        return unit_vectors(np.asarray(rows, dtype=np.float32))
