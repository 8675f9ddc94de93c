"""Gemini's embedding models through langchain-google-genai, with their task types for documents and questions."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from rag_lab.errors import ModelError
from rag_lab.models.protocols import Vectors
from rag_lab.models.remote.gemini import KEY_VARIABLES
from rag_lab.models.remote.http_bounds import MIB, HttpBounds
from rag_lab.models.remote.patience import Patience
from rag_lab.models.remote.reply_shapes import check_embeddings
from rag_lab.models.remote.requests import CallFailed, RetryPolicy, in_parallel
from rag_lab.models.requirements import require_key, require_package
from rag_lab.models.unit_vectors import unit_vectors

_MAX_REPLY_BYTES = 32 * MIB  # a hundred vectors of 3072 numbers take 6


class GeminiEmbedder:
    """A Gemini embedding model, e.g. `gemini-embedding-001`."""

    def __init__(
        self,
        name: str,
        *,
        base_url: str = "",
        batch_size: int = 100,
        concurrency: int = 4,
        max_attempts: int = 5,
        timeout_s: float = 120.0,
    ) -> None:
        self.name = name
        self.base_url = base_url
        self.batch_size = batch_size
        self.concurrency = concurrency
        self.retry = RetryPolicy(max_attempts)
        self.timeout_s = timeout_s

    def __repr__(self) -> str:
        return f"GeminiEmbedder({self.name!r})"

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name and the address where it is not Google's own; never the key."""
        return {"provider": "gemini", "name": self.name, "base_url": self.base_url}

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return (n_texts, dim) unit vectors, task type RETRIEVAL_DOCUMENT.

        Raises:
            ModelError: if the package or key is missing, or a batch fails after every attempt.
        """
        return self._embed(texts, "RETRIEVAL_DOCUMENT")

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return (n_texts, dim) unit vectors, task type RETRIEVAL_QUERY; see `embed_documents`."""
        return self._embed(texts, "RETRIEVAL_QUERY")

    @cached_property
    def _client(self) -> Any:
        library = require_package("langchain_google_genai", "langchain-google-genai")
        bounds = HttpBounds(self.timeout_s, _MAX_REPLY_BYTES, check_embeddings)
        return library.GoogleGenerativeAIEmbeddings(
            model=self.name,
            google_api_key=require_key(KEY_VARIABLES),
            base_url=self.base_url or None,
            client_args={"event_hooks": bounds.hooks()},
            vertexai=False,
        )

    @cached_property
    def _patience(self) -> Patience:
        return Patience({**self.identity(), "kind": "embedding"})

    def _embed(self, texts: Sequence[str], task_type: str) -> Vectors:
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        client, size, _ = self._client, self.batch_size, self._patience

        def embed(batch: Sequence[str]) -> list[list[float]]:
            return self.retry.call(
                repr(self),
                lambda: client.embed_documents(list(batch), task_type=task_type, batch_size=size),
                self._patience,
            )

        batches = [texts[start : start + size] for start in range(0, len(texts), size)]
        try:
            rows = list(itertools.chain.from_iterable(in_parallel(embed, batches, self.concurrency)))
        except CallFailed as error:
            raise ModelError(f"{self!r}: {error}; try again later.") from None
        if len(rows) != len(texts):
            raise ModelError(f"{self!r} returned {len(rows)} vectors for {len(texts)} texts.")
        return unit_vectors(np.asarray(rows, dtype=np.float32))
