"""Our messages as LangChain's, and LangChain's replies as ours."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rag_lab.models.protocols import ChatReply, Message
from rag_lab.models.thinking import split_thinking

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage

_CUT_OFF = {"length", "max_tokens", "model_length"}
_ACCIDENTS = {"tool_calls", "function_call", "malformed_function_call", "unexpected_tool_call", "error", "other"}
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
    error, transient = "", False
    if not text and (tools := [*message.tool_calls, *message.invalid_tool_calls]):
        error, transient = (
            f"The model called a tool ({tools[0].get('name')}) that nobody offered it, and wrote no reply.",
            True,
        )
    elif not text and (reason in _REFUSED or not (thinking or reason in _CUT_OFF)):
        error = f"The model returned no text (finish reason: {reason or 'none given'})."
        transient = not reason or reason in _ACCIDENTS  # a model that has ended says so
    return ChatReply(
        text=text,
        thinking=thinking,
        tokens_in=usage["input_tokens"] if usage else 0,
        tokens_out=usage["output_tokens"] if usage else 0,
        thinking_tokens=usage.get("output_token_details", {}).get("reasoning", 0) if usage else 0,
        truncated_tokens=int(message.response_metadata.get("unread_tokens", 0)),  # where a provider of ours knows
        truncated=reason in _CUT_OFF,
        error=error,
        transient=transient,
    )


def _finish_reason(message: AIMessage) -> str:
    """Return why the reply ended, or why the prompt was blocked; '' where neither is told."""
    metadata = message.response_metadata
    blocked = (metadata.get("prompt_feedback") or {}).get("block_reason")
    return str(metadata.get("finish_reason") or metadata.get("done_reason") or blocked or "").rpartition(".")[2].lower()


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
