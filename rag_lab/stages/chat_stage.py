"""What every stage that asks a chat model has in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest, Message
from rag_lab.records import MachineUse, StageStatus, Trace
from rag_lab.stages.stage import Outcome

_OF_USE = ("load_s", "memory_mb", "joules")
_SUMS = ("seconds", "tokens_in", "tokens_out", "thinking_tokens", "truncated_tokens", "cost_usd")


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


def summed(replies: Sequence[ChatReply]) -> ChatReply:
    """Return what several calls for one question cost together, without any text."""
    sums: dict[str, Any] = {name: sum(getattr(reply, name) for reply in replies) for name in _SUMS}
    return ChatReply(transient=any(reply.transient for reply in replies), machine=_machine_of(replies), **sums)


def _machine_of(replies: Sequence[ChatReply]) -> MachineUse | None:
    """Return what one model took of this machine for all of them: of the figures only energy adds up."""
    uses = [reply.machine for reply in replies if reply.machine is not None]
    if not uses:
        return None
    loads, memories, joules = ([value for use in uses if (value := getattr(use, name)) is not None] for name in _OF_USE)
    return MachineUse(max(loads, default=None), max(memories, default=None), sum(joules) if joules else None)


def nothing_written(reply: ChatReply) -> str:
    """Return why there is no text in a reply that is no error."""
    return "the model thought and wrote no reply" if reply.has_thought else "the model wrote nothing"


def chat_outcome(reply: ChatReply, updates: Mapping[str, Any], status: StageStatus = "ok", reason: str = "") -> Outcome:
    """Return the outcome of one call: its tokens, seconds and cost, and whether another attempt may cure its error."""
    used: dict[str, Any] = {name: getattr(reply, name) for name in (*_SUMS, "machine")}
    return Outcome(updates, status, reason, lasting=not reply.transient, **used)
