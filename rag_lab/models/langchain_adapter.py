"""Between LangChain's chat models and ours, both ways."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rag_lab.errors import ModelError
from rag_lab.models.base import ChatModel, ChatReply, ChatRequest, Message
from rag_lab.models.thinking import split_thinking

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.outputs import ChatResult

_CUT_OFF = {"length", "max_tokens", "model_length"}
_REFUSED = {"safety", "content_filter", "blocklist", "prohibited_content", "recitation", "spii"}


def to_langchain_messages(messages: Sequence[Message]) -> list[BaseMessage]:
    """Return LangChain's messages."""
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

    kinds = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
    return [kinds[message.role](content=_content(message)) for message in messages]


def _content(message: Message) -> str | list[str | dict[Any, Any]]:
    if not message.images:
        return message.content
    urls = [f"data:image/png;base64,{base64.b64encode(image).decode()}" for image in message.images]
    return [
        {"type": "text", "text": message.content},
        *({"type": "image_url", "image_url": {"url": url}} for url in urls),
    ]


def from_langchain_message(message: AIMessage) -> ChatReply:
    """Return the text, thinking and token counts of LangChain's reply; `error` where there is neither text nor cut."""
    usage = message.usage_metadata
    reason = _finish_reason(message)
    text, inline = split_thinking(message.text)
    thinking = _thinking(message) or inline
    error = ""
    if not text and (reason in _REFUSED or not (thinking or reason in _CUT_OFF)):
        error = f"The model returned no text (finish reason: {reason or 'none given'})."
    return ChatReply(
        text=text,
        thinking=thinking,
        tokens_in=usage["input_tokens"] if usage else 0,
        tokens_out=usage["output_tokens"] if usage else 0,
        truncated=reason in _CUT_OFF,
        error=error,
        transient=bool(error) and not reason,  # a model that has ended says so
    )


def _finish_reason(message: AIMessage) -> str:
    """Return why the reply ended, or why the prompt was blocked; '' where neither is told."""
    metadata = message.response_metadata
    blocked = (metadata.get("prompt_feedback") or {}).get("block_reason")
    return str(metadata.get("finish_reason") or blocked or "").rpartition(".")[2].lower()


def _thinking(message: AIMessage) -> str:
    """Return reasoning given apart from the text: content blocks, or OpenAI-compatible servers' extra field."""
    extra = message.additional_kwargs.get("reasoning_content")
    if isinstance(extra, str) and extra:
        return extra.strip()
    blocks: list[Any] = message.content if isinstance(message.content, list) else []
    parts = [
        str(block.get("thinking") or block.get("reasoning") or "")
        for block in blocks
        if isinstance(block, dict) and block.get("type") in ("thinking", "reasoning")
    ]
    return "\n".join(filter(None, parts)).strip()


def as_langchain(model: ChatModel, *, max_tokens: int = 256, temperature: float = 0.0, seed: int = 0) -> BaseChatModel:
    """Return a LangChain chat model that calls `model`.

    The returned model raises `ModelError` where ours replies with `error`.
    """
    from langchain_core.callbacks import CallbackManagerForLLMRun
    from langchain_core.language_models import BaseChatModel

    class WorkbenchChat(BaseChatModel):
        """Calls one of the workbench's chat models."""

        @property
        def _llm_type(self) -> str:
            return "rag_lab"

        def _generate(
            self,
            messages: list[BaseMessage],
            stop: list[str] | None = None,
            run_manager: CallbackManagerForLLMRun | None = None,
            **kwargs: Any,
        ) -> ChatResult:
            request = ChatRequest(
                messages=tuple(_from_langchain(message) for message in messages),
                max_tokens=kwargs.get("max_tokens", max_tokens),
                temperature=kwargs.get("temperature", temperature),
                seed=kwargs.get("seed", seed),
            )
            return _as_result(model.generate([request])[0], stop or [])

    return WorkbenchChat()


def _from_langchain(message: BaseMessage) -> Message:
    match message.type:
        case "system" | "developer":
            return Message("system", message.text)
        case "human":
            return Message("user", message.text)
        case "ai":
            return Message("assistant", message.text)
    raise ModelError(f"Messages of type {message.type!r} cannot be sent; allowed are system, human and ai.")


def _as_result(reply: ChatReply, stop: Sequence[str]) -> ChatResult:
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    if reply.error:
        raise ModelError(reply.error)
    text = reply.text
    for word in stop:
        text = text.partition(word)[0]
    total = reply.tokens_in + reply.tokens_out
    message = AIMessage(
        content=text,
        additional_kwargs={"reasoning_content": reply.thinking} if reply.thinking else {},
        usage_metadata={"input_tokens": reply.tokens_in, "output_tokens": reply.tokens_out, "total_tokens": total},
        response_metadata={"finish_reason": "length" if reply.truncated else "stop"},
    )
    return ChatResult(generations=[ChatGeneration(message=message)])
