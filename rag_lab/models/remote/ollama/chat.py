"""Ollama's chat models through langchain-ollama, by the server's own interface.

Its OpenAI interface knows neither the window nor the switch of thinking: prompts are cut at 4,096 tokens there, and
models that think do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rag_lab.errors import ModelError
from rag_lab.models.prices import own_prices
from rag_lab.models.protocols import ChatReply, ChatRequest
from rag_lab.models.remote.http_bounds import CHAT_BYTES, HttpBounds
from rag_lab.models.remote.langchain_chat import LangChainChat
from rag_lab.models.remote.ollama.bodies import check_chat
from rag_lab.models.remote.ollama.levels import least_tokens, level_of
from rag_lab.models.remote.ollama.server import ModelDescription, NoAnswer, OllamaServer, as_duration
from rag_lab.models.remote.requests import RetryPolicy
from rag_lab.models.requirements import require_package
from rag_lab.models.token_estimate import estimated_tokens, request_tokens

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage


class OllamaChat(LangChainChat):
    """A model of an Ollama server, e.g. `qwen3:8b`. JSON schemas are enforced by the server.

    Args:
        name: as `ollama list` has it.
        base_url: of the server; OLLAMA_HOST, else this machine, where it is left out.
        context: the window in tokens that the server makes for prompt and reply (`num_ctx`); more needs more memory.
        keep_alive: how long the weights stay loaded after a call, such as `10m`, or `-1` for ever.
        concurrency: calls at a time; the server makes a window for each that it takes (OLLAMA_NUM_PARALLEL).
        max_attempts: of one call.
        timeout_s: of one attempt; the first one loads the weights.
    """

    constrains_json = True
    provider = "ollama"

    def __init__(
        self,
        name: str,
        *,
        base_url: str = "",
        context: int = 8192,
        keep_alive: str = "",
        concurrency: int = 1,
        max_attempts: int = 5,
        timeout_s: float = 300.0,
    ) -> None:
        super().__init__(name, context_tokens=context, concurrency=concurrency, retry=RetryPolicy(max_attempts))
        self.server = OllamaServer(base_url)
        self.keep_alive = as_duration(keep_alive)
        self.timeout_s = timeout_s

    @property
    def priced(self) -> bool:
        """Whether the user's table has a price for it: nobody else asks money for one's own server."""
        return self.name in own_prices()

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name, digest of the weights and the window; the same weights elsewhere are the same model.

        Raises:
            ModelError: if the server does not answer and never told the digest, or has no such model.
        """
        weights = self.server.digest(self.name)
        return {**super().identity(), "weights": weights, "context_tokens": self.context_tokens}

    @property
    def least_thinking_tokens(self) -> int:
        """Tokens of thinking that a model which cannot stop takes at the least."""
        return least_tokens(self.name)

    def problem(self, within_s: float) -> str:
        """Return why it cannot answer now, in one sentence, or ''; see `OllamaServer.problem`."""
        return self.server.problem(self.name, within_s)

    def build(self) -> BaseChatModel:
        """Return the client.

        Raises:
            ModelError: if the package or the model is missing, or the model reads less than the window is to hold.
        """
        library = require_package("langchain_ollama", "langchain-ollama")
        own_tokens = self._described.context_tokens
        if 0 < own_tokens < self.context_tokens:
            raise ModelError(
                f"{self.name} reads at most {own_tokens:,} tokens, and a window of {self.context_tokens:,} was asked "
                f"for; write ollama:{self.name}?context={own_tokens}."
            )
        bounds = HttpBounds(self.timeout_s, CHAT_BYTES, check_chat)
        client: BaseChatModel = library.ChatOllama(
            model=self.name, base_url=self.server.address, sync_client_kwargs={"event_hooks": bounds.hooks()}
        )
        return client

    def generate(self, requests: Sequence[ChatRequest]) -> list[ChatReply]:
        """Return one reply for each request, in order.

        Raises:
            ModelError: if the model is missing, or sees no images and is shown one.
        """
        can = self._described.capabilities if any(map(_shows, requests)) else ()
        if can and "vision" not in can:
            raise ModelError(f"{self.name} sees no images; take a model of Ollama that does, such as gemma3:4b.")
        return super().generate(requests)

    def invoke(self, messages: list[BaseMessage], request: ChatRequest) -> AIMessage:
        """Ask, and end thinking at its budget.

        Where the budget is spent before the reply has ended, or the reply is longer than `max_tokens`, the model is
        asked for the reply alone, behind its thought as far as that went.
        """
        from rag_lab.models.remote.ollama.thought import as_turn, joined, reply_tokens

        if not request.thinking:
            return self._ask(messages, request, request.max_tokens, think=False)
        think = level_of(self.name, request.thinking_tokens) or True
        first = self._ask(messages, request, request.thinking_tokens, think=think)
        is_cut = first.response_metadata.get("done_reason") == "length"
        if not is_cut and reply_tokens(first) <= request.max_tokens:
            return first
        behind = level_of(self.name, 0) or False
        return joined(first, self._ask([*messages, as_turn(first)], request, request.max_tokens, think=behind))

    @cached_property
    def _described(self) -> ModelDescription:
        try:
            return self.server.described(self.name)
        except NoAnswer:  # each call will say so, and try again
            return ModelDescription(0, ())

    def _ask(
        self, messages: list[BaseMessage], request: ChatRequest, most_tokens: int, *, think: bool | str
    ) -> AIMessage:
        from rag_lab.models.remote.ollama.thought import counted_call

        options = {
            "num_ctx": self.context_tokens,
            "num_predict": most_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
            **request.sampling,
        }
        message = self._client.invoke(
            messages,
            stream=False,
            options=options,
            format=dict(request.json_schema) if request.json_schema is not None else None,
            keep_alive=self.keep_alive,
            reasoning=True,  # keep what it thinks, also where it was asked not to
            think=think,
        )
        thought = sum(estimated_tokens(str(each.additional_kwargs.get("reasoning_content") or "")) for each in messages)
        return counted_call(message, self.context_tokens, request_tokens(request) + thought)


def _shows(request: ChatRequest) -> bool:
    return any(message.images for message in request.messages)
