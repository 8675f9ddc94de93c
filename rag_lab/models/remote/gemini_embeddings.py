"""Gemini's embedding models through langchain-google-genai, with their task types for documents and questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_lab.models.remote.gemini import KEY_VARIABLES, service_problem
from rag_lab.models.remote.http_bounds import MIB, HttpBounds
from rag_lab.models.remote.remote_embedder import RemoteEmbedder
from rag_lab.models.remote.reply_shapes import check_embeddings
from rag_lab.models.requirements import require_key, require_package

_MOST_TOKENS = {"gemini-embedding-001": 2048, "text-embedding-004": 2048}
_MAX_REPLY_BYTES = 32 * MIB  # a hundred vectors of 3072 numbers take 6


class GeminiEmbedder(RemoteEmbedder):
    """A Gemini embedding model, e.g. `gemini-embedding-001`; see `RemoteEmbedder`."""

    provider = "gemini"

    def __init__(
        self,
        name: str,
        *,
        base_url: str = "",
        batch_size: int = 100,
        concurrency: int = 4,
        max_attempts: int = 5,
        timeout_s: float = 120.0,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
    ) -> None:
        super().__init__(
            name,
            batch_size=batch_size,
            concurrency=concurrency,
            max_attempts=max_attempts,
            timeout_s=timeout_s,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
        )
        self.base_url = base_url

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name and the address where it is not Google's own; never the key."""
        return {**super().identity(), "base_url": self.base_url}

    @property
    def most_tokens(self) -> int | None:
        """The most tokens of one text that the service reads, by its documentation; it cuts longer ones."""
        return _MOST_TOKENS.get(self.name.removeprefix("models/"))

    def problem(self, within_s: float) -> str:
        """Return why it cannot answer now, in one sentence, or ''."""
        return service_problem(self.name, self.base_url, within_s)

    def build(self) -> Any:
        """Return the client.

        Raises:
            ModelError: if the package or the key is missing.
        """
        library = require_package("langchain_google_genai", "langchain-google-genai")
        bounds = HttpBounds(self.timeout_s, _MAX_REPLY_BYTES, check_embeddings)
        return library.GoogleGenerativeAIEmbeddings(
            model=self.name,
            google_api_key=require_key(KEY_VARIABLES),
            base_url=self.base_url or None,
            client_args={"event_hooks": bounds.hooks()},
            vertexai=False,
        )

    def embed(self, client: Any, texts: list[str], *, is_query: bool) -> Sequence[Sequence[float]]:
        """Return one vector for each text, of the task type RETRIEVAL_QUERY or RETRIEVAL_DOCUMENT."""
        task_type = "RETRIEVAL_QUERY" if is_query else "RETRIEVAL_DOCUMENT"
        rows: list[list[float]] = client.embed_documents(texts, task_type=task_type, batch_size=self.batch_size)
        return rows
