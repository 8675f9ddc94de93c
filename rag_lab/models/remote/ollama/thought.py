"""What a call of an Ollama model took: tokens of thought, tokens beyond its window; and two calls as one."""

from __future__ import annotations

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import OutputTokenDetails, UsageMetadata

_FIELD = "reasoning_content"
_UNREAD = "unread_tokens"
_BESIDE_HALF = 8  # tokens of a prompt's beginning that a server keeps beside half a window


def counted_call(message: AIMessage, window: int, most_sent: int) -> AIMessage:
    """Return the reply of one call with its tokens of thought, and those of the prompt that were without effect.

    The server counts thought and reply together; they are shared out by their lengths in bytes.

    Args:
        message: as LangChain gives it.
        window: tokens that the server was asked to hold.
        most_sent: the most tokens that the prompt can have had.
    """
    thinking, usage = _thinking(message), message.usage_metadata
    if usage is None:
        return message
    n_bytes = len(thinking.encode()), len(message.text.encode())
    share = n_bytes[0] / sum(n_bytes) if thinking else 0.0
    read, written = usage["input_tokens"], usage["output_tokens"]
    unread = {_UNREAD: _unread(read, written, window, most_sent)}
    found = message.model_copy(update={"response_metadata": message.response_metadata | unread})
    return _with_usage(found, read, written, round(share * written))


def _unread(read: int, written: int, window: int, most_sent: int) -> int:
    """Return how many tokens of a prompt were without effect; at least so many.

    Of a prompt that is longer than its window a server reads half a window (ollama#17427), an older one a whole; and as
    it writes on beyond the window, it lets go of what it has read.
    """
    if most_sent > window and 0 <= read - window // 2 <= _BESIDE_HALF:
        return window + 1 - read
    return max(0, read + written - window, int(most_sent > window <= read))


def reply_tokens(message: AIMessage) -> int:
    """Return the tokens of a counted reply without its thought."""
    usage = message.usage_metadata
    return usage["output_tokens"] - _thought(usage) if usage else 0


def as_turn(message: AIMessage) -> AIMessage:
    """Return the thought of a reply as the beginning of the assistant's turn; a template closes it there."""
    return AIMessage("", additional_kwargs={_FIELD: _thinking(message)})


def joined(first: AIMessage, reply: AIMessage) -> AIMessage:
    """Return the second of two counted calls with the thought of both and all that was written; the prompt is one."""
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


def _thinking(message: AIMessage) -> str:
    return str(message.additional_kwargs.get(_FIELD) or "")


def _thought(usage: UsageMetadata) -> int:
    return usage.get("output_token_details", {}).get("reasoning", 0)


def _with_usage(message: AIMessage, read: int, written: int, thought: int) -> AIMessage:
    usage = UsageMetadata(
        input_tokens=read,
        output_tokens=written,
        total_tokens=read + written,
        output_token_details=OutputTokenDetails(reasoning=thought),
    )
    return message.model_copy(update={"usage_metadata": usage})
