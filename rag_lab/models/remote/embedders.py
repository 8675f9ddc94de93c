"""Embedding models behind a server: batches, retries, prefixes, unit vectors; those of Gemini, Ollama and OpenAI."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from pydantic_core.core_schema import int_schema, list_schema

from rag_lab.errors import ModelError
from rag_lab.memory.results import batches
from rag_lab.models import protocols, requirements, truncation
from rag_lab.models.remote import gemini, http, ollama, openai, replies
from rag_lab.models.remote.retries import RemoteModel, RemoteOptions

_IN_IDENTITY = ("document_prefix", "query_prefix", "context", "dimensions")
_AROUND = 2  # tokens that a model may put around a text
_GEMINI_TOKENS = {"gemini-embedding-001": 2048, "text-embedding-004": 2048}
_MAX_GEMINI_BYTES = 32 * http.MIB  # a hundred vectors of 3072 numbers take 6
_MAX_OLLAMA_BYTES = 32 * http.MIB
_LARGEST_WINDOW = 8192  # made unasked: its memory grows with it
_MAX_OPENAI_BYTES = 64 * http.MIB  # a hundred vectors of 4096 numbers, as digits, take 9


class RemoteEmbedder(protocols.EmbedsByKind, RemoteModel):
    """An embedder that sends at most `batch_size` texts in one call, `concurrency` calls at a time."""

    kind = "embedding"
    _ask: Callable[..., Sequence[Sequence[float]]]  # one vector for each text of a batch, of any length, asking once

    def identity(self) -> Mapping[str, Any]:
        """Return what every remote model says, with prefixes, dimensions and window: that changes what is not read."""
        named = {key: getattr(self.options, key) for key in _IN_IDENTITY}
        return {**super().identity(), **{key: value for key, value in named.items() if value not in ("", None)}}

    @property
    def most_tokens(self) -> int | None:
        """The most tokens of one text that the model reads, where that is known."""
        return self.options.context

    def text_tokens(self, texts: Sequence[str], kind: protocols.TextKind) -> list[int]:
        """Return an upper estimate of each text's tokens, its prefix included: the tokenizer is the server's."""
        prefix = getattr(self.options, f"{kind}_prefix")
        return [truncation.estimated_tokens(prefix + text) + _AROUND for text in texts]

    def _embed(self, kind: protocols.TextKind, texts: Sequence[str]) -> protocols.Vectors:
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        _ = self._client  # a missing key is one error, before any thread starts
        prefix = getattr(self.options, f"{kind}_prefix")
        found = self._call_all(
            partial(self._ask, is_query=kind == "query"),
            list(batches([prefix + text for text in texts], self.options.batch_size)),
            lambda batch: sum(map(truncation.estimated_tokens, batch)),
        )
        rows = list(itertools.chain.from_iterable(found))
        if len(rows) != len(texts):
            raise ModelError(f"{self!r} returned {len(rows)} vectors for {len(texts)} texts.")
        if len({len(row) for row in rows}) > 1:
            raise ModelError(f"{self!r} returned vectors of different lengths; ask one server with one model.")
        return protocols.unit_vectors(np.asarray(rows, dtype=np.float32))


class GeminiEmbedder(gemini.GeminiModel, RemoteEmbedder):
    """A Gemini embedding model, e.g. `gemini-embedding-001`; see `RemoteEmbedder`."""

    defaults = RemoteOptions(batch_size=100)

    @property
    def most_tokens(self) -> int | None:
        """The most tokens of one text that the service reads, by its documentation; it cuts longer ones."""
        return _GEMINI_TOKENS.get(self.name.removeprefix("models/"))

    @cached_property
    def _client(self) -> Any:
        return self._langchain("GoogleGenerativeAIEmbeddings", _MAX_GEMINI_BYTES, replies.check_embeddings)

    def _ask(self, texts: list[str], *, is_query: bool) -> Sequence[Sequence[float]]:
        task_type = "RETRIEVAL_QUERY" if is_query else "RETRIEVAL_DOCUMENT"
        size = self.options.batch_size
        rows: list[list[float]] = self._client.embed_documents(texts, task_type=task_type, batch_size=size)
        return rows


class OllamaEmbedder(ollama.OllamaModel, RemoteEmbedder):
    """An embedding model of an Ollama server, asked by its own client: LangChain's takes no window, counts nothing."""

    defaults = RemoteOptions(concurrency=1, timeout_s=300.0)
    _is_silent = False

    @property
    def most_tokens(self) -> int | None:
        """The window in tokens: the option's, else the model's own up to 8,192; None where the server does not tell."""
        if self._is_silent:
            return None
        try:
            return self._window
        except ollama.NoAnswer:  # the first text to embed will say so, or ask again
            self._is_silent = True
            return None

    @cached_property
    def _client(self) -> Any:
        library = requirements.require_package("ollama", "langchain-ollama")
        # a server that does not tell the window is an error: vectors of another window are no part of this identity
        self._is_silent, _ = False, self._window
        hooks = http.event_hooks(self.options.timeout_s, _MAX_OLLAMA_BYTES, ollama.check_ollama_embeddings)
        return library.Client(host=self.server.address, event_hooks=hooks)

    def _ask(self, texts: list[str], *, is_query: bool) -> Sequence[Sequence[float]]:
        rows: Sequence[Sequence[float]] = self._client.embed(
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


def _check_places(found: Mapping[str, Any]) -> None:
    if sorted(row["index"] for row in found["data"]) != list(range(len(found["data"]))):
        raise http.BadReply("the server answered with embeddings whose places do not count from 0")


_ROW = replies.object_of({"index": int_schema(), "embedding": replies.VECTOR})
_check_rows = replies.check_of(
    replies.object_of({"data": list_schema(_ROW, min_length=1)}), "batch of embeddings", _check_places
)


class OpenAIEmbedder(openai.OpenAIModel, RemoteEmbedder):
    """An embedding model, e.g. `text-embedding-3-small`; LangChain's class would cut texts into OpenAI's tokens first.

    `context` is the most tokens of one text that the model reads, where its server truncates longer ones without a
    word; OpenAI's own and vLLM refuse them.
    """

    defaults = RemoteOptions(batch_size=64)

    @cached_property
    def _client(self) -> Any:
        library = requirements.require_package("openai", "langchain-openai")
        hooks = http.event_hooks(self.options.timeout_s, _MAX_OPENAI_BYTES, _check_rows)
        return library.OpenAI(
            api_key=self.key(),
            base_url=self.address,
            timeout=self.options.timeout_s,
            http_client=library.DefaultHttpxClient(event_hooks=hooks),
            max_retries=0,
        )

    def _ask(self, texts: list[str], *, is_query: bool) -> Sequence[Sequence[float]]:
        more = {} if self.options.dimensions is None else {"dimensions": self.options.dimensions}
        reply = self._client.embeddings.create(model=self.name, input=texts, encoding_format="float", **more)
        return [row.embedding for row in sorted(reply.data, key=lambda row: row.index)]
