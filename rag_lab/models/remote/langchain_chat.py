"""Any LangChain chat model as ours, with bounded concurrency, retries and costs. Remote providers build on it."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rag_lab.models.prices import cost_usd
from rag_lab.models.protocols import ChatReply, ChatRequest
from rag_lab.models.remote.langchain_adapter import from_langchain_message, to_langchain_messages
from rag_lab.models.remote.patience import Patience
from rag_lab.models.remote.reply_bounds import bounded, counted
from rag_lab.models.remote.requests import CallFailed, RetryPolicy, in_parallel
from rag_lab.models.token_estimate import estimated_tokens
from rag_lab.redaction import hide_known, one_line

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage

_LOG = logging.getLogger(__name__)
_REASON_CHARS = 600  # why a model was given up holds the reason of its last failure


class LangChainChat:
    """Wraps a LangChain chat model whose own retries are off. `name` goes into the identity and finds the price."""

    constrains_json = False
    provider = "langchain"

    def __init__(
        self,
        name: str,
        model: BaseChatModel | None = None,
        *,
        context_tokens: int = 32_768,
        concurrency: int = 4,
        retry: RetryPolicy = RetryPolicy(),  # noqa: B008 (frozen)
    ) -> None:
        self.name = name
        self.model = model
        self.context_tokens = context_tokens
        self.concurrency = concurrency
        self.retry = retry
        self._told_of_guess = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def identity(self) -> Mapping[str, Any]:
        """Return provider and name, and what else a provider adds; never the key."""
        return {"provider": self.provider, "name": self.name}

    def generate(self, requests: Sequence[ChatRequest]) -> list[ChatReply]:
        """Return one reply for each request, in order, at most `concurrency` at a time."""
        if requests:
            _ = self._client, self._patience  # a missing key is one error, before any thread starts
        return in_parallel(self._reply, requests, self.concurrency)

    def count_tokens(self, text: str) -> int:
        """Return an upper estimate: asking the provider would cost a call each time."""
        return estimated_tokens(text)

    def call_options(self, request: ChatRequest) -> dict[str, Any]:
        """Return what `invoke` gets for this request. Providers override it."""
        return {"max_tokens": request.max_tokens, "temperature": request.temperature}

    def invoke(self, messages: list[BaseMessage], request: ChatRequest) -> AIMessage:
        """Return the model's reply to this request. Providers override it where options are not enough."""
        return self._client.invoke(messages, **self.call_options(request))

    def build(self) -> BaseChatModel:
        """Return the LangChain model, on first use. Providers override it."""
        if self.model is None:
            raise TypeError("LangChainChat needs a model")
        return self.model

    @cached_property
    def _client(self) -> BaseChatModel:
        return self.build()

    @cached_property
    def _patience(self) -> Patience:
        return Patience(self.identity())

    def _reply(self, request: ChatRequest) -> ChatReply:
        start = time.perf_counter()
        messages = to_langchain_messages(request.messages)
        try:
            message = self.retry.call(repr(self), lambda: self.invoke(messages, request), self._patience)
        except CallFailed as error:
            seconds = time.perf_counter() - start if error.asked else 0.0
            reason = one_line(str(error), _REASON_CHARS)
            return ChatReply(error=reason, transient=error.transient, asked=error.asked, seconds=seconds)
        reply, guessed = counted(request, _without_secrets(from_langchain_message(message)))
        if guessed and not self._told_of_guess:
            self._told_of_guess = True
            _LOG.warning("%r: %s; tokens and costs are estimated", self, guessed)
        reply = bounded(request, reply)
        cost = cost_usd(self.provider, self.name, reply.tokens_in, reply.tokens_out) if self.priced else 0.0
        return replace(reply, seconds=time.perf_counter() - start, cost_usd=cost)

    @property
    def priced(self) -> bool:
        """Whether calls cost money: not those of a server of one's own."""
        return True


def _without_secrets(reply: ChatReply) -> ChatReply:
    """Return what a server said without the secrets that this process knows: a gateway may repeat what it was sent."""
    error = one_line(reply.error, _REASON_CHARS)
    return replace(reply, text=hide_known(reply.text), thinking=hide_known(reply.thinking), error=error)
