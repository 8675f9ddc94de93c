"""Ollama's embedding models, such as `nomic-embed-text` and `bge-m3`, by the server's own interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from rag_lab.models.prices import own_prices
from rag_lab.models.remote.http_bounds import MIB, HttpBounds
from rag_lab.models.remote.ollama.bodies import check_embeddings
from rag_lab.models.remote.ollama.server import NoAnswer, OllamaServer, as_duration
from rag_lab.models.remote.remote_embedder import RemoteEmbedder
from rag_lab.models.requirements import require_package

_MAX_REPLY_BYTES = 32 * MIB
_LARGEST_WINDOW = 8192  # made unasked: its memory grows with it


class OllamaEmbedder(RemoteEmbedder):
    """An embedding model of an Ollama server; see `RemoteEmbedder`, and `OllamaChat` for the server's options.

    LangChain's class tells neither how much was read nor takes the window, so the server's own client is asked.
    """

    provider = "ollama"

    def __init__(
        self,
        name: str,
        *,
        base_url: str = "",
        context: int | None = None,
        keep_alive: str = "",
        dimensions: int | None = None,
        document_prefix: str = "",
        query_prefix: str = "",
        batch_size: int = 32,
        concurrency: int = 1,
        max_attempts: int = 5,
        timeout_s: float = 300.0,
    ) -> None:
        super().__init__(
            name,
            batch_size=batch_size,
            concurrency=concurrency,
            max_attempts=max_attempts,
            timeout_s=timeout_s,
            document_prefix=document_prefix,
            query_prefix=query_prefix,
            context=context,
            dimensions=dimensions,
        )
        self.server = OllamaServer(base_url)
        self.keep_alive = as_duration(keep_alive)
        self._is_silent = False

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name, digest of the weights, and window, dimensions and prefixes where they are given.

        Raises:
            ModelError: if the server does not answer and never told the digest, or has no such model.
        """
        return {**super().identity(), "weights": self.server.digest(self.name)}

    @property
    def priced(self) -> bool:
        """Whether the user's table has a price for it: nobody else asks money for one's own server."""
        return self.name in own_prices()

    def problem(self, within_s: float) -> str:
        """Return why it cannot answer now, in one sentence, or ''; see `OllamaServer.problem`."""
        return self.server.problem(self.name, within_s)

    @property
    def most_tokens(self) -> int | None:
        """The window in tokens: as it is given, else the model's own up to 8,192; None where the server does not tell.

        The server cuts longer texts there without a word.
        """
        if self._is_silent:
            return None
        try:
            return self._window
        except NoAnswer:  # the first text to embed will say so, or ask again
            self._is_silent = True
            return None

    def build(self) -> Any:
        """Return the client.

        Raises:
            ModelError: if the package or the model is missing, or the server does not tell the model's window: vectors
                of another window are no part of this identity.
        """
        library = require_package("ollama", "langchain-ollama")
        self._is_silent, _ = False, self._window
        bounds = HttpBounds(self.timeout_s, _MAX_REPLY_BYTES, check_embeddings)
        return library.Client(host=self.server.address, event_hooks=bounds.hooks())

    def embed(self, client: Any, texts: list[str], *, is_query: bool) -> Sequence[Sequence[float]]:
        """Return one vector for each text."""
        rows: Sequence[Sequence[float]] = client.embed(
            self.name,
            texts,
            options=None if self._window is None else {"num_ctx": self._window},
            keep_alive=self.keep_alive,
            dimensions=self.dimensions,
        ).embeddings
        return rows

    @cached_property
    def _window(self) -> int | None:
        return self.context or min(self.server.described(self.name).context_tokens, _LARGEST_WINDOW) or None
