"""Ollama's chat models through langchain-ollama, by the server's own interface.

Its OpenAI interface knows neither the window nor the switch of thinking: prompts are cut at 4,096 tokens there, and
models that think do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rag_lab.errors import ModelError
from rag_lab.models import requirements, truncation
from rag_lab.models.protocols import ChatRequest
from rag_lab.models.remote import http, ollama_server
from rag_lab.models.remote.langchain_chat import LangChainChat
from rag_lab.models.remote.requests import RemoteOptions
from rag_lab.models.remote.thinking_options import TOKENS_OF, level_of

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.messages.ai import UsageMetadata


_FIELD = "reasoning_content"
_UNREAD = "unread_tokens"
_BESIDE_HALF = 8  # tokens of a prompt's beginning that a server keeps beside half a window


def _thinking(message: BaseMessage) -> str:
    return str(message.additional_kwargs.get(_FIELD) or "")


def _thought(usage: UsageMetadata) -> int:
    return usage.get("output_token_details", {}).get("reasoning", 0)


def _with_usage(message: AIMessage, read: int, written: int, thought: int) -> AIMessage:
    usage = {
        "input_tokens": read,
        "output_tokens": written,
        "total_tokens": read + written,
        "output_token_details": {"reasoning": thought},
    }
    return message.model_copy(update={"usage_metadata": usage})


class OllamaChat(ollama_server.OllamaModel, LangChainChat):
    """A model of an Ollama server, e.g. `qwen3:8b`. JSON schemas are enforced by the server.

    Its name is as `ollama list` has it. `context` is the window that the server makes for prompt and reply
    (`num_ctx`), one for each call that it takes at a time (OLLAMA_NUM_PARALLEL): more needs more memory.
    """

    constrains_json = True
    defaults = RemoteOptions(context=8192, concurrency=1, timeout_s=300.0)

    def identity(self) -> Mapping[str, Any]:
        """Return what every model of Ollama says of itself, and the window."""
        return {**super().identity(), "context_tokens": self.context_tokens}

    @property
    def least_thinking_tokens(self) -> int:
        """Tokens of thinking that a model which cannot stop takes at the least."""
        return TOKENS_OF[level_of(self.name, 0) or "none"]

    @cached_property
    def _client(self) -> Any:
        library = requirements.require_package("langchain_ollama", "langchain-ollama")
        own_tokens = self._described.context_tokens
        if 0 < own_tokens < self.context_tokens:
            raise ModelError(
                f"{self.name} reads at most {own_tokens:,} tokens, and a window of {self.context_tokens:,} was asked "
                f"for; write ollama:{self.name}?context={own_tokens}."
            )
        bounds = http.HttpBounds(self.options.timeout_s, http.CHAT_BYTES, ollama_server.check_chat)
        return library.ChatOllama(
            model=self.name, base_url=self.server.address, sync_client_kwargs={"event_hooks": bounds.hooks()}
        )

    def check(self, requests: Sequence[ChatRequest]) -> None:
        """Refuse images for a model that sees none, too."""
        super().check(requests)
        shows = any(message.images for request in requests for message in request.messages)
        can = self._described.capabilities if shows else ()
        if can and "vision" not in can:
            raise ModelError(f"{self.name} sees no images; take a model of Ollama that does, such as gemma3:4b.")

    def invoke(self, messages: list[BaseMessage], request: ChatRequest) -> AIMessage:
        """Ask, and end thinking at its budget.

        Where the budget is spent before the reply has ended, or the reply is longer than `max_tokens`, the model is
        asked for the reply alone, behind its thought as far as that went.
        """
        from langchain_core.messages import AIMessage

        if not request.thinking:
            return self._ask(messages, request, request.max_tokens, think=False)
        think = level_of(self.name, request.thinking_tokens) or True
        first = self._ask(messages, request, request.thinking_tokens, think=think)
        usage = first.usage_metadata
        reply_tokens = usage["output_tokens"] - _thought(usage) if usage else 0
        if first.response_metadata.get("done_reason") != "length" and reply_tokens <= request.max_tokens:
            return first
        # the thought is the beginning of the assistant's turn; a template closes it there
        turn = AIMessage("", additional_kwargs={_FIELD: _thinking(first)})
        behind = level_of(self.name, 0) or False
        reply = self._ask([*messages, turn], request, request.max_tokens, think=behind)
        # one reply of both calls: the thought of both and all that was written; the prompt is one
        thinking = "\n".join(filter(None, (_thinking(first), _thinking(reply))))
        unread = {_UNREAD: max(each.response_metadata.get(_UNREAD, 0) for each in (first, reply))}
        found = reply.model_copy(
            update={
                "additional_kwargs": reply.additional_kwargs | {_FIELD: thinking},
                "response_metadata": reply.response_metadata | unread,
            }
        )
        before, after = first.usage_metadata, reply.usage_metadata
        if before is None or after is None:
            return found.model_copy(update={"usage_metadata": None})
        written = before["output_tokens"] + after["output_tokens"]
        return _with_usage(found, before["input_tokens"], written, _thought(before) + _thought(after))

    @cached_property
    def _described(self) -> ollama_server.ModelDescription:
        try:
            return self.server.described(self.name)
        except ollama_server.NoAnswer:  # each call will say so, and try again
            return ollama_server.ModelDescription(0, ())

    def _ask(
        self, messages: list[BaseMessage], request: ChatRequest, most_tokens: int, *, think: bool | str
    ) -> AIMessage:
        """Return the reply of one call with its tokens of thought, and those of the prompt that were without effect.

        The server counts thought and reply together; they are shared out by their lengths in bytes.
        """
        options = {
            "num_ctx": self.context_tokens,
            "num_predict": most_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
            **request.sampling,
        }
        message: AIMessage = self._client.invoke(
            messages,
            stream=False,
            options=options,
            format=dict(request.json_schema) if request.json_schema is not None else None,
            keep_alive=self.keep_alive,
            reasoning=True,  # keep what it thinks, also where it was asked not to
            think=think,
        )
        most_sent = truncation.request_tokens(request)
        most_sent += sum(truncation.estimated_tokens(_thinking(each)) for each in messages)
        thinking, usage = _thinking(message), message.usage_metadata
        if usage is None:
            return message
        n_bytes = len(thinking.encode()), len(message.text.encode())
        share = n_bytes[0] / sum(n_bytes) if thinking else 0.0
        read, written = usage["input_tokens"], usage["output_tokens"]
        # of a prompt that is longer than its window a server reads half a window (ollama#17427), an older one a whole;
        # and as it writes on beyond the window, it lets go of what it has read: so many tokens are missing at least
        window = self.context_tokens
        unread = max(0, read + written - window, int(most_sent > window <= read))
        if most_sent > window and 0 <= read - window // 2 <= _BESIDE_HALF:
            unread = window + 1 - read
        found = message.model_copy(update={"response_metadata": message.response_metadata | {_UNREAD: unread}})
        return _with_usage(found, read, written, round(share * written))
