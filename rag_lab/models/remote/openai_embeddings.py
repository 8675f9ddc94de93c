"""Embedding models of OpenAI, and of every server with its interface (vLLM, TEI, Infinity, llama.cpp)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field, FiniteFloat

from rag_lab.models.prices import own_prices
from rag_lab.models.remote.failures import BadReply
from rag_lab.models.remote.http_bounds import MIB, HttpBounds
from rag_lab.models.remote.openai_server import OpenAIServer
from rag_lab.models.remote.remote_embedder import RemoteEmbedder
from rag_lab.models.remote.reply_shapes import read_as
from rag_lab.models.requirements import require_package

_MAX_REPLY_BYTES = 64 * MIB  # a hundred vectors of 4096 numbers, as digits, take 9


class _Row(BaseModel):
    index: int
    embedding: Annotated[list[FiniteFloat], Field(min_length=1)]


class _Embeddings(BaseModel):
    data: Annotated[list[_Row], Field(min_length=1)]


def check_rows(content: bytes) -> None:
    """Check the body of a batch of embeddings: finite vectors, one for each place.

    Raises:
        BadReply: if it is anything else, in a user's words.
    """
    found = read_as(content, _Embeddings, "batch of embeddings")
    if sorted(row.index for row in found.data) != list(range(len(found.data))):
        raise BadReply("the server answered with embeddings whose places do not count from 0")


class OpenAIEmbedder(RemoteEmbedder):
    """An embedding model, e.g. `text-embedding-3-small`; see `RemoteEmbedder`.

    Texts go out as they are: LangChain's class would cut them into tokens of OpenAI's own models first, whatever the
    server, so the client beneath it is asked.

    Args:
        name: as the server has it.
        base_url: of the server; OPENAI_BASE_URL, else OpenAI's own, where it is left out.
        dimensions: how many numbers a vector shall have, where the model can choose.
        context: the most tokens of one text that the model reads, where its server cuts longer ones without a word;
            OpenAI's own and vLLM refuse them.
    """

    provider = "openai"

    def __init__(
        self,
        name: str,
        *,
        base_url: str = "",
        dimensions: int | None = None,
        context: int | None = None,
        document_prefix: str = "",
        query_prefix: str = "",
        batch_size: int = 64,
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
            document_prefix=document_prefix,
            query_prefix=query_prefix,
            context=context,
            dimensions=dimensions,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
        )
        self.server = OpenAIServer(base_url)

    def identity(self) -> Mapping[str, Any]:
        """Return what every embedder behind a server says of itself, and the address; never the key."""
        return {**super().identity(), "base_url": self.server.address}

    @property
    def most_tokens(self) -> int | None:
        """The most tokens of one text that the model reads, where that is given."""
        return self.context

    @property
    def priced(self) -> bool:
        """OpenAI's own service, and a server whose model has a price in the user's table."""
        return self.server.is_official or self.name in own_prices()

    def problem(self, within_s: float) -> str:
        """Return why it cannot answer now, in one sentence, or ''; see `OpenAIServer.problem`."""
        return self.server.problem(within_s)

    def build(self) -> Any:
        """Return the client.

        Raises:
            ModelError: if the package is missing, or the key of a server that is not on loopback.
        """
        library = require_package("openai", "langchain-openai")
        bounds = HttpBounds(self.timeout_s, _MAX_REPLY_BYTES, check_rows)
        return library.OpenAI(
            api_key=self.server.key(),
            base_url=self.server.address,
            timeout=self.timeout_s,
            http_client=library.DefaultHttpxClient(event_hooks=bounds.hooks()),
            max_retries=0,
        )

    def embed(self, client: Any, texts: list[str], *, is_query: bool) -> Sequence[Sequence[float]]:
        """Return one vector for each text."""
        given = {} if self.dimensions is None else {"dimensions": self.dimensions}
        reply = client.embeddings.create(model=self.name, input=texts, encoding_format="float", **given)
        return [row.embedding for row in sorted(reply.data, key=lambda row: row.index)]
