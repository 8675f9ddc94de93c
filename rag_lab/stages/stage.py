"""The contract of a stage: a function on a batch of traces, described by frozen parameters.

What can change a stage's result is all in `identity()` and in the trace fields named by `reads`, so that the store can
remember it for each question. A stage's constructor only stores; models load on the first `run`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, ClassVar, Protocol, get_args, get_type_hints

from pydantic import TypeAdapter

from rag_lab.records import MachineUse, StageStatus, Trace

OFF = "off"  # the reason in the record of what is switched off


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
