"""A reply that follows a closed thought, on servers of one's own that do not end thinking at a budget themselves.

vLLM and SGLang go on with an assistant's last message (`continue_final_message`), so a thought that spent its budget is
closed and the reply is asked for behind it, held to the schema. A server that was started without a reasoning parser
holds the very first token to the schema, which leaves no thought at all: there the thought is asked for without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rag_lab.models.protocols import ChatReply, ChatRequest, Message

Ask = Callable[[ChatRequest], ChatReply]


class ThinkingSteps:
    """Asks a server once, or again where its first reply shows that it is needed. Threads may share it."""

    def __init__(self) -> None:
        self._schema_hides_thought: bool | None = None  # None: not found out yet

    def reply(self, request: ChatRequest, ask: Ask) -> ChatReply:
        """Return the reply to `request`; `ask` makes one call."""
        if not request.thinking or request.json_schema is None:
            return _gone_on(request, ask(request), ask)
        if not self._schema_hides_thought:
            held = ask(request)
            if held.error or held.has_thought:
                self._schema_hides_thought = False
            if held.error or self._schema_hides_thought is False:
                return _gone_on(request, held, ask)
        free = ask(replace(request, json_schema=None))
        if self._schema_hides_thought is None:
            self._schema_hides_thought = bool(free.thinking)
            if not free.thinking:  # it does not think at all
                return held
        return free if free.error else _behind(request, free, ask)


def _gone_on(request: ChatRequest, reply: ChatReply, ask: Ask) -> ChatReply:
    """Return the reply, or where it ended in thought, what follows that thought once it is closed."""
    ended_in_thought = not reply.error and not reply.text and bool(reply.thinking)
    return _behind(request, reply, ask) if ended_in_thought else reply


def _behind(request: ChatRequest, first: ChatReply, ask: Ask) -> ChatReply:
    """Return what follows the thought of `first`, as far as the budget goes; `first` where the server refuses that."""
    thought = _within(first, request.thinking_tokens)
    closed = Message("assistant", f"<think>\n{thought}\n</think>\n\n")
    second = ask(replace(request, messages=(*request.messages, closed), thinking_tokens=0))
    if not request.thinking and not _has_text(second):  # llama.cpp does not go on behind a mark, but keeps a budget
        second = ask(replace(request, thinking_tokens=1))
    if not _has_text(second):
        return replace(first, transient=first.transient or second.transient)  # another attempt may go on
    return replace(
        second,
        thinking=thought,
        tokens_in=first.tokens_in,  # the prompt is one
        tokens_out=first.tokens_out + second.tokens_out,
        thinking_tokens=first.thinking_tokens or first.tokens_out,
        seconds=first.seconds + second.seconds,
    )


def _has_text(reply: ChatReply) -> bool:
    return bool(reply.text) and not reply.error


def _within(reply: ChatReply, budget: int) -> str:
    """Return a thought up to its budget, by the share of its tokens."""
    spent = reply.thinking_tokens or reply.tokens_out
    return reply.thinking if spent <= budget else reply.thinking[: len(reply.thinking) * budget // spent].rstrip()
