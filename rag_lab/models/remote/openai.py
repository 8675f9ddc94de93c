"""Any OpenAI-compatible server (Ollama, vLLM, llama.cpp, TGI, OpenAI itself) through langchain-openai.

The address is the option base_url or OPENAI_BASE_URL, the key OPENAI_API_KEY; a server on loopback needs none.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rag_lab.models.options import check_url
from rag_lab.models.prices import own_prices
from rag_lab.models.protocols import ChatRequest
from rag_lab.models.remote.http_bounds import CHAT_BYTES, HttpBounds
from rag_lab.models.remote.langchain_chat import LangChainChat
from rag_lab.models.remote.reply_shapes import check_completion
from rag_lab.models.remote.requests import RetryPolicy
from rag_lab.models.requirements import require_key, require_package

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_OFFICIAL = "https://api.openai.com/v1"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class OpenAIChat(LangChainChat):
    """A model of an OpenAI-compatible server. JSON schemas go out as `response_format`."""

    constrains_json = True
    provider = "openai"

    def __init__(
        self,
        name: str,
        *,
        base_url: str = "",
        context: int = 32_768,
        concurrency: int = 4,
        max_attempts: int = 5,
        timeout_s: float = 120.0,
    ) -> None:
        super().__init__(name, context_tokens=context, concurrency=concurrency, retry=RetryPolicy(max_attempts))
        self.base_url = base_url
        self.timeout_s = timeout_s

    @property
    def address(self) -> str:
        """The server's address, checked to carry no secret."""
        address = self.base_url or os.environ.get("OPENAI_BASE_URL") or _OFFICIAL
        check_url(address, "OPENAI_BASE_URL")
        return address

    @property
    def priced(self) -> bool:
        """OpenAI's own service, and a server whose model has a price in the user's table."""
        return self.address == _OFFICIAL or self.name in own_prices()

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name and address; never the key."""
        return {**super().identity(), "base_url": self.address}

    def build(self) -> BaseChatModel:
        """Return the client.

        Raises:
            ModelError: if the package is missing, or the key of a server that is not on loopback.
        """
        require_package("langchain_openai", "langchain-openai")
        from openai import DefaultHttpxClient

        from rag_lab.models.remote.openai_reasoning import ReasoningChatOpenAI

        bounds = HttpBounds(self.timeout_s, CHAT_BYTES, check_completion)
        client: BaseChatModel = ReasoningChatOpenAI(
            model=self.name,
            api_key=self._key(),
            base_url=self.address,
            timeout=self.timeout_s,
            http_client=DefaultHttpxClient(event_hooks=bounds.hooks()),
            max_retries=0,
            use_responses_api=False,
        )
        return client

    def call_options(self, request: ChatRequest) -> dict[str, Any]:
        """Return sampling, length, the thinking switch and the JSON schema as OpenAI-compatible servers name them.

        They go into the body as they are: the client would rename `max_tokens` to what only OpenAI knows, and would
        throw away a reply under a schema that was cut off.
        """
        is_official = self.address == _OFFICIAL
        body: dict[str, Any] = {"max_completion_tokens" if is_official else "max_tokens": request.max_tokens}
        if request.json_schema is not None:
            schema = {"name": "reply", "schema": dict(request.json_schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if not is_official and "qwen3" in self.name.lower():  # its template knows the switch
            body["chat_template_kwargs"] = {"enable_thinking": request.thinking}
        return {"temperature": request.temperature, "seed": request.seed, "extra_body": body}

    def _key(self) -> str:
        if urlsplit(self.address).hostname in _LOOPBACK and not os.environ.get("OPENAI_API_KEY"):
            return "none"  # the client insists on a key, the server does not
        return require_key(["OPENAI_API_KEY"])
