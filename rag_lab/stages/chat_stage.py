"""What every stage that asks a chat model has in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest, Message
from rag_lab.records import MachineUse, StageStatus, Trace
from rag_lab.stages.stage import BuiltInStage, Outcome

_SUMS = ("seconds", "tokens_in", "tokens_out", "thinking_tokens", "truncated_tokens", "cost_usd")


@dataclass(frozen=True)
class ChatStage(BuiltInStage):
    """Ask `model`, the requests of all traces of a batch at once. A forecast counts `requests` without asking."""

    model: ChatModel

    batch_size = 8
    costly = True

    def requests_for(self, trace: Trace) -> list[ChatRequest]:
        """Return what is asked for one trace; nothing where it needs no call."""
        raise NotImplementedError

    def read(self, trace: Trace, requests: Sequence[ChatRequest], replies: Sequence[ChatReply]) -> Outcome:
        """Return what the replies to its requests mean for a trace."""
        raise NotImplementedError

    def requests(self, traces: Sequence[Trace]) -> list[ChatRequest]:
        """Return what `run` would ask for these traces, in order. No model is loaded."""
        return [request for trace in traces for request in self.requests_for(trace)]

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Return one outcome for each trace, in order."""
        asked = [self.requests_for(trace) for trace in traces]
        replies = iter(self.model.generate([request for requests in asked for request in requests]))
        return [
            self.read(trace, requests, list(islice(replies, len(requests))))
            for trace, requests in zip(traces, asked, strict=True)
        ]


def few_shot(
    system: str, examples: Iterable[tuple[str, str]], asked: str, earlier: Sequence[Message] = ()
) -> tuple[Message, ...]:
    """Return a chat: what is to be done, examples as pairs of user and assistant, earlier turns, what is asked."""
    shots = [message for user, reply in examples for message in (Message("user", user), Message("assistant", reply))]
    return (Message("system", system), *shots, *earlier, Message("user", asked))


def written(messages: Sequence[Message]) -> str:
    """Return a chat as one text, message by message, as traces and reports show it."""
    return "\n\n".join(f"{message.role}: {message.content}" for message in messages)


def summed(replies: Sequence[ChatReply]) -> ChatReply:
    """Return what several calls for one question cost together, without any text; of `machine` only energy adds up."""
    sums: dict[str, Any] = {name: sum(getattr(reply, name) for reply in replies) for name in _SUMS}
    uses = [reply.machine for reply in replies if reply.machine is not None]
    machine = None
    if uses:
        joules = [use.joules for use in uses if use.joules is not None]
        machine = MachineUse(
            max((use.load_s for use in uses if use.load_s is not None), default=None),
            max((use.memory_mb for use in uses if use.memory_mb is not None), default=None),
            sum(joules) if joules else None,
        )
    return ChatReply(transient=any(reply.transient for reply in replies), machine=machine, **sums)


def nothing_written(reply: ChatReply) -> str:
    """Return why there is no text in a reply that is no error."""
    return "the model thought and wrote no reply" if reply.has_thought else "the model wrote nothing"


def chat_outcome(reply: ChatReply, updates: Mapping[str, Any], status: StageStatus = "ok", reason: str = "") -> Outcome:
    """Return the outcome of one call: its tokens, seconds and cost, and whether another attempt may cure its error."""
    used: dict[str, Any] = {name: getattr(reply, name) for name in (*_SUMS, "machine")}
    return Outcome(updates, status, reason, lasting=not reply.transient, **used)
