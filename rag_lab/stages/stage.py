"""The contract of a stage: a function on a batch of traces, described by frozen parameters.

What can change a stage's result is all in `identity()` and in the trace fields named by `reads`, so that the store can
remember it for each question. A stage's constructor only stores; models load on the first `run`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from itertools import islice
from typing import Any, ClassVar, Protocol, get_args, get_type_hints

from pydantic import TypeAdapter

from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest, Message
from rag_lab.records import MachineUse, StageStatus, Trace

OFF = "off"  # the reason in the record of what is switched off
_SUMS = ("seconds", "tokens_in", "tokens_out", "thinking_tokens", "truncated_tokens", "cost_usd")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a stage did to one trace.

    `updates` maps trace fields, or `hits.<search>`, to their new values: a subset of the stage's `writes`. `seconds`
    is None where the stage cannot tell one question's share of a batch; the runner then divides the batch's time
    evenly. Of them `replayed_s` were spent earlier, on what this result shares with others (`Replayed`).
    `lasting` is False for what another attempt may cure (a rate limit, a time-out): the store does not remember it.
    """

    updates: Mapping[str, Any] = field(default_factory=dict)
    status: StageStatus = "ok"
    reason: str = ""
    seconds: float | None = None
    replayed_s: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    thinking_tokens: int = 0
    truncated_tokens: int = 0
    cost_usd: float = 0.0
    machine: MachineUse | None = None
    lasting: bool = True


class Stage(Protocol):
    """One step of the pipeline. `off` is a stage too, so an ablation is a value and never an `if`."""

    @property
    def name(self) -> str:
        """The step's name on the trace, e.g. `rerank`."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Trace fields that the result depends on; dotted for one of the question's, or one search's: `hits.bm25`."""

    @property
    def writes(self) -> tuple[str, ...]:
        """Trace fields that the stage may set; dotted for the hits of one search."""

    @property
    def batch_size(self) -> int:
        """How many traces one `run` takes; results are saved after each batch, so a kill loses one batch at most."""

    @property
    def costly(self) -> bool:
        """Whether results are worth remembering; what is quicker to compute than to look up is always computed."""

    def identity(self) -> Mapping[str, Any]:
        """Everything else that can change the result, as JSON values: version, parameters, model, prompt."""

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Return one outcome for each trace, in order.

        Raises:
            RagLabError: if the stage cannot work at all (a model that does not load). What concerns one question is
                an outcome with status `fallback` or `failed` and a reason, never an exception.
        """


@dataclass(frozen=True)
class BuiltInStage:
    """A stage of ours: its fields are its parameters, and its identity is made of them.

    A subclass has `name`, `reads` and `writes`, and raises `VERSION` where its results change and no field does.
    `PROMPTS` is the version of the prompts that are built in, in place of which the field `prompt` may hold another;
    `WORDS` is that of how words are cut.
    A field that cannot change a result is declared with `compare=False`.
    """

    VERSION: ClassVar[int] = 1
    PROMPTS: ClassVar[int] = 0
    WORDS: ClassVar[int] = 0

    batch_size = 1000
    costly = False

    def identity(self) -> Mapping[str, Any]:
        """The class with its version, and every field."""
        found = {"stage": type(self).__name__, "version": self.VERSION, **fields_of(self)}
        if self.PROMPTS:
            found["prompts"] = found.pop("prompt") or self.PROMPTS
        return {**found, "words": self.WORDS} if self.WORDS else found

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Return one outcome for each trace, in order."""
        return [self.outcome(trace) for trace in traces]

    def outcome(self, trace: Trace) -> Outcome:
        """Return what becomes of one trace, of a stage that takes them one by one."""
        raise NotImplementedError


def identity_of(value: Any) -> Any:
    """Return whatever of a parameter can change a result, as a JSON value."""
    if hasattr(value, "identity"):
        return dict(value.identity())
    if hasattr(value, "digest"):  # an index, a prompt
        return value.digest
    if is_dataclass(value):
        return fields_of(value)
    if isinstance(value, Mapping):
        return {key: identity_of(inner) for key, inner in value.items()}
    return [identity_of(inner) for inner in value] if isinstance(value, tuple | list) else value


def fields_of(value: Any) -> dict[str, Any]:
    """Return what each field of a dataclass adds to its identity."""
    return {each.name: identity_of(getattr(value, each.name)) for each in fields(value) if each.compare}


@dataclass(frozen=True)
class Off(BuiltInStage):
    """The absence of the step `name`: it changes nothing, and its record says so."""

    name: str

    reads = ()
    writes = ()
    batch_size = 10_000

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Leave every trace as it is."""
        return [Outcome(reason=OFF, seconds=0.0)] * len(traces)


@cache
def field_type(path: str) -> TypeAdapter[Any]:
    """Return what checks a value for the trace field at `path`: `ranked`, or `hits.bm25` for one entry of a mapping."""
    name, _, entry = path.partition(".")
    hint = get_type_hints(Trace)[name]
    return TypeAdapter(get_args(hint)[1] if entry else hint)


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
