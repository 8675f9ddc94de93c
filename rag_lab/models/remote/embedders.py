"""Embedding models behind a server: batches, retries, prefixes, unit vectors; those of Gemini, Ollama and OpenAI."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, Field, FiniteFloat

from rag_lab.errors import ModelError
from rag_lab.models.prices import user_prices
from rag_lab.models.protocols import Vectors, unit_vectors
from rag_lab.models.remote.failures import BadReply
from rag_lab.models.remote.gemini import KEY_VARIABLES, service_problem
from rag_lab.models.remote.http import MIB, HttpBounds
from rag_lab.models.remote.ollama_server import NoAnswer, OllamaServer, as_duration, check_ollama_embeddings
from rag_lab.models.remote.openai import OpenAIServer
from rag_lab.models.remote.reply_shapes import check_embeddings, read_as
from rag_lab.models.remote.requests import CallFailed, CircuitBreaker, RemoteModel, RemoteOptions, in_parallel
from rag_lab.models.requirements import require_key, require_package
from rag_lab.models.truncation import TextKind, estimated_tokens

_IN_IDENTITY = ("document_prefix", "query_prefix", "context", "dimensions")
_AROUND = 2  # tokens that a model may put around a text


class RemoteEmbedder(RemoteModel, ABC):
    """An embedder that sends at most `batch_size` texts in one call, `concurrency` calls at a time."""

    def identity(self) -> Mapping[str, Any]:
        """Return provider and name, what is given of prefixes, window and dimensions, and what else a provider adds.

        Never the key. A window may change no vector, but it changes what is counted as not read.
        """
        named = {key: getattr(self.options, key) for key in _IN_IDENTITY}
        return {**super().identity(), **{key: value for key, value in named.items() if value not in ("", None)}}

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return (n_texts, dim) unit vectors of passages, in order."""
        return self._embed([self.options.document_prefix + text for text in texts], is_query=False)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return (n_texts, dim) unit vectors of questions, in order; see `embed_documents`."""
        return self._embed([self.options.query_prefix + text for text in texts], is_query=True)

    @property
    def most_tokens(self) -> int | None:
        """The most tokens of one text that the model reads; None where that is not known, or longer texts are refused.

        Providers say what they know.
        """
        return None

    def text_tokens(self, texts: Sequence[str], kind: TextKind) -> list[int]:
        """Return an upper estimate of each text's tokens, its prefix included: the tokenizer is the server's."""
        prefix = self.options.document_prefix if kind == "document" else self.options.query_prefix
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
    def _breaker(self) -> CircuitBreaker:
        return CircuitBreaker({**self.identity(), "kind": "embedding"})

    def _embed(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        client, breaker = self._client, self._breaker  # a missing key is one error, before any thread starts

        def embed(batch: Sequence[str]) -> Sequence[Sequence[float]]:
            tokens = sum(map(estimated_tokens, batch))
            return self.retry.call(
                repr(self), lambda: self.embed(client, list(batch), is_query=is_query), breaker, tokens
            )

        batches = [
            texts[start : start + self.options.batch_size] for start in range(0, len(texts), self.options.batch_size)
        ]
        try:
            rows = list(itertools.chain.from_iterable(in_parallel(embed, batches, self.concurrency)))
        except CallFailed as error:
            raise ModelError(f"{self!r}: {error}; try again later.") from None
        if len(rows) != len(texts):
            raise ModelError(f"{self!r} returned {len(rows)} vectors for {len(texts)} texts.")
        if len({len(row) for row in rows}) > 1:
            raise ModelError(f"{self!r} returned vectors of different lengths; ask one server with one model.")
        return unit_vectors(np.asarray(rows, dtype=np.float32))


_GEMINI_TOKENS = {"gemini-embedding-001": 2048, "text-embedding-004": 2048}
_MAX_GEMINI_BYTES = 32 * MIB  # a hundred vectors of 3072 numbers take 6


class GeminiEmbedder(RemoteEmbedder):
    """A Gemini embedding model, e.g. `gemini-embedding-001`; see `RemoteEmbedder`."""

    provider = "gemini"

    defaults = RemoteOptions(batch_size=100)

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name and the address where it is not Google's own; never the key."""
        return {**super().identity(), "base_url": self.options.base_url}

    @property
    def most_tokens(self) -> int | None:
        """The most tokens of one text that the service reads, by its documentation; it cuts longer ones."""
        return _GEMINI_TOKENS.get(self.name.removeprefix("models/"))

    def problem(self, within_s: float) -> str:
        """Return why it cannot answer now, in one sentence, or ''."""
        return service_problem(self.name, self.options.base_url, within_s)

    def build(self) -> Any:
        """Return the client."""
        library = require_package("langchain_google_genai", "langchain-google-genai")
        bounds = HttpBounds(self.options.timeout_s, _MAX_GEMINI_BYTES, check_embeddings)
        return library.GoogleGenerativeAIEmbeddings(
            model=self.name,
            google_api_key=require_key(KEY_VARIABLES),
            base_url=self.options.base_url or None,
            client_args={"event_hooks": bounds.hooks()},
            vertexai=False,
        )

    def embed(self, client: Any, texts: list[str], *, is_query: bool) -> Sequence[Sequence[float]]:
        """Return one vector for each text, of the task type RETRIEVAL_QUERY or RETRIEVAL_DOCUMENT."""
        task_type = "RETRIEVAL_QUERY" if is_query else "RETRIEVAL_DOCUMENT"
        rows: list[list[float]] = client.embed_documents(texts, task_type=task_type, batch_size=self.options.batch_size)
        return rows


_MAX_OLLAMA_BYTES = 32 * MIB
_LARGEST_WINDOW = 8192  # made unasked: its memory grows with it


class OllamaEmbedder(RemoteEmbedder):
    """An embedding model of an Ollama server; see `RemoteEmbedder`, and `OllamaChat` for the server's options.

    LangChain's class tells neither how much was read nor takes the window, so the server's own client is asked.
    """

    provider = "ollama"

    defaults = RemoteOptions(concurrency=1, timeout_s=300.0)

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.server = OllamaServer(self.options.base_url)
        self.keep_alive = as_duration(self.options.keep_alive)
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
        return self.name in user_prices()

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
        bounds = HttpBounds(self.options.timeout_s, _MAX_OLLAMA_BYTES, check_ollama_embeddings)
        return library.Client(host=self.server.address, event_hooks=bounds.hooks())

    def embed(self, client: Any, texts: list[str], *, is_query: bool) -> Sequence[Sequence[float]]:
        """Return one vector for each text."""
        rows: Sequence[Sequence[float]] = client.embed(
            self.name,
            texts,
            options=None if self._window is None else {"num_ctx": self._window},
            keep_alive=self.keep_alive,
            dimensions=self.options.dimensions,
        ).embeddings
        return rows

    @cached_property
    def _window(self) -> int | None:
        return self.options.context or min(self.server.described(self.name).context_tokens, _LARGEST_WINDOW) or None


_MAX_OPENAI_BYTES = 64 * MIB  # a hundred vectors of 4096 numbers, as digits, take 9


class _Row(BaseModel):
    index: int
    embedding: Annotated[list[FiniteFloat], Field(min_length=1)]


class _Embeddings(BaseModel):
    data: Annotated[list[_Row], Field(min_length=1)]


def check_rows(content: bytes) -> None:
    """Check the body of a batch of embeddings: finite vectors, one for each place."""
    found = read_as(content, _Embeddings, "batch of embeddings")
    if sorted(row.index for row in found.data) != list(range(len(found.data))):
        raise BadReply("the server answered with embeddings whose places do not count from 0")


class OpenAIEmbedder(RemoteEmbedder):
    """An embedding model, e.g. `text-embedding-3-small`; see `RemoteEmbedder`.

    Texts go out as they are: LangChain's class would cut them into tokens of OpenAI's own models first, whatever the
    server, so the client beneath it is asked.

    `context` is the most tokens of one text that the model reads, where its server truncates longer ones without a
    word; OpenAI's own and vLLM refuse them.
    """

    provider = "openai"

    defaults = RemoteOptions(batch_size=64)

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.server = OpenAIServer(self.options.base_url)

    def identity(self) -> Mapping[str, Any]:
        """Return what every embedder behind a server says of itself, and the address; never the key."""
        return {**super().identity(), "base_url": self.server.address}

    @property
    def most_tokens(self) -> int | None:
        """The most tokens of one text that the model reads, where that is given."""
        return self.options.context

    @property
    def priced(self) -> bool:
        """OpenAI's own service, and a server whose model has a price in the user's table."""
        return self.server.is_official or self.name in user_prices()

    def problem(self, within_s: float) -> str:
        """Return why it cannot answer now, in one sentence, or ''; see `OpenAIServer.problem`."""
        return self.server.problem(within_s)

    def build(self) -> Any:
        """Return the client."""
        library = require_package("openai", "langchain-openai")
        bounds = HttpBounds(self.options.timeout_s, _MAX_OPENAI_BYTES, check_rows)
        return library.OpenAI(
            api_key=self.server.key(),
            base_url=self.server.address,
            timeout=self.options.timeout_s,
            http_client=library.DefaultHttpxClient(event_hooks=bounds.hooks()),
            max_retries=0,
        )

    def embed(self, client: Any, texts: list[str], *, is_query: bool) -> Sequence[Sequence[float]]:
        """Return one vector for each text."""
        given = {} if self.options.dimensions is None else {"dimensions": self.options.dimensions}
        reply = client.embeddings.create(model=self.name, input=texts, encoding_format="float", **given)
        return [row.embedding for row in sorted(reply.data, key=lambda row: row.index)]
