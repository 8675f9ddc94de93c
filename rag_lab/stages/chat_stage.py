"""What every stage that asks a chat model has in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest, Message
from rag_lab.records import StageStatus, Trace
from rag_lab.stages.stage import Outcome


@runtime_checkable
class ChatStage(Protocol):
    """What a stage that asks a chat model adds to `Stage`: what it would ask can be told without asking."""

    @property
    def model(self) -> ChatModel:
        """The model that is asked."""

    def requests(self, traces: Sequence[Trace]) -> list[ChatRequest]:
        """Return what `run` would ask for these traces, in order; some may need no call. No model is loaded."""


def written(messages: Sequence[Message]) -> str:
    """Return a chat as one text, message by message, as traces and reports show it."""
    return "\n\n".join(f"{message.role}: {message.content}" for message in messages)


def chat_outcome(reply: ChatReply, updates: Mapping[str, Any], status: StageStatus = "ok", reason: str = "") -> Outcome:
    """Return the outcome of one call: its tokens, seconds and cost, and whether another attempt may cure its error."""
    return Outcome(
        updates=updates,
        status=status,
        reason=reason,
        seconds=reply.seconds,
        tokens_in=reply.tokens_in,
        tokens_out=reply.tokens_out,
        cost_usd=reply.cost_usd,
        lasting=not reply.transient,
    )
