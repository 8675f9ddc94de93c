"""What is believed of a remote model's reply: as much text as was asked for, and counts of tokens that can be."""

from __future__ import annotations

from dataclasses import replace

from rag_lab.models.protocols import ChatReply, ChatRequest
from rag_lab.models.truncation import estimated_tokens, request_texts, request_tokens, truncated_in_prompt

_CHARS_A_TOKEN = 32  # a word of English has five; a token of spaces may have more than a hundred
_CHARS_AROUND = 1000
_TOKENS_AROUND = 1000  # what a server may put around a prompt
_TOKENS_OF_AN_IMAGE = 50_000  # at the dearest service


def bounded(request: ChatRequest, reply: ChatReply) -> ChatReply:
    """Return `reply` without what goes far beyond `request.most_tokens_out`, `truncated` where that was cut off.

    A server that keeps to `max_tokens` would have cut there, too; one that does not never will, so that trying again
    would cure nothing.
    """
    most = _CHARS_A_TOKEN * request.most_tokens_out + _CHARS_AROUND
    if max(len(reply.text), len(reply.thinking)) <= most:
        return reply
    return replace(reply, text=reply.text[:most], thinking=reply.thinking[:most], truncated=True)


def counted(request: ChatRequest, reply: ChatReply) -> tuple[ChatReply, str]:
    """Return `reply` with counts of tokens that can be, and why they are estimates ('' where they are the server's).

    No token is shorter than a byte, so the server cannot have read more tokens than bytes were sent, nor written more
    than it was allowed to or than bytes have come. An estimate is an upper one, within what the request allows. Where
    the server's own count is less than what was sent, the rest is `truncated_tokens`.
    """
    n_sent = sum(len(text.encode()) for text in request_texts(request)) + _TOKENS_AROUND
    n_sent += _TOKENS_OF_AN_IMAGE * sum(len(message.images) for message in request.messages)
    written = reply.text + reply.thinking
    most_out = max(request.most_tokens_out, len(written.encode()))
    if 0 < reply.tokens_in <= n_sent and 0 <= reply.tokens_out <= most_out:
        unread = reply.truncated_tokens or truncated_in_prompt(request, reply.tokens_in)
        return replace(reply, thinking_tokens=_thinking_tokens(reply), truncated_tokens=unread), ""
    told = f"{reply.tokens_in} read, {reply.tokens_out} written"
    estimate = replace(
        reply, tokens_in=request_tokens(request), tokens_out=min(estimated_tokens(written), request.most_tokens_out)
    )
    estimate = replace(estimate, thinking_tokens=_thinking_tokens(replace(estimate, thinking_tokens=0)))
    return estimate, f"the server's counts of tokens are missing or cannot be ({told})"


def _thinking_tokens(reply: ChatReply) -> int:
    """Return what the server counted as thinking, or where it does not tell, the thought's share by estimate."""
    if 0 < reply.thinking_tokens <= reply.tokens_out:
        return reply.thinking_tokens
    n_thought, n_text = estimated_tokens(reply.thinking), estimated_tokens(reply.text)
    return round(reply.tokens_out * n_thought / (n_thought + n_text)) if n_thought else 0
