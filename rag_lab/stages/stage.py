"""The contract of a stage: a function on a batch of traces, described by frozen parameters; what stages share.

What can change a stage's result is all in `identity()` and in the trace fields named by `reads`, so that the store can
remember it for each question. A stage's constructor only stores; models load on the first `run`.

A custom module is a function, an instance that is called like one, or a whole `Stage`, which is held to its contract.
It is called for one question at a time, checked, and remembered.
"""

import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from itertools import islice
from typing import Any, ClassVar, Protocol, cast, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from rag_lab._kit.custom_code import CustomCode, CustomCodeError
from rag_lab._kit.registry import Kind, Module, from_object
from rag_lab.corpus.corpus_index import CorpusIndex
from rag_lab.errors import ConfigError
from rag_lab.memory.results import Memory, Replayed
from rag_lab.models import providers, shared
from rag_lab.models.config import ModelsConfig
from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest, Embedder, Message, PairScorer
from rag_lab.models.remembered_vectors import RememberedScorer
from rag_lab.records import Hit, MachineUse, Passage, Question, StageStatus, Trace
from rag_lab.stages import config as sections
from rag_lab.stages.chat_template import SHIPPED_PROMPTS, ChatTemplate

OFF = "off"  # the reason in the record of what is switched off
SUMS = ("seconds", "tokens_in", "tokens_out", "thinking_tokens", "truncated_tokens", "cost_usd")


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
        """Return one outcome for each trace, in order; a `RagLabError` if the stage cannot work at all.

        What concerns one question is an outcome with status `fallback` or `failed` and a reason, never an exception.
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

    def outcome(self, trace: Trace) -> Outcome:
        """Leave a trace as it is."""
        return Outcome(reason=OFF, seconds=0.0)


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


def object_schema(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object that has all of these properties and no others."""
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def shipped_chat(name: str, asked: str, earlier: Sequence[Message] = (), **values: str) -> tuple[Message, ...]:
    """Return the chat of a built-in prompt; `values` fill the places in what is to be done."""
    words = SHIPPED_PROMPTS[name]
    return few_shot(words["system"].format(**values) if values else words["system"], words["examples"], asked, earlier)


def written(messages: Sequence[Message]) -> str:
    """Return a chat as one text, message by message, as traces and reports show it."""
    return "\n\n".join(f"{message.role}: {message.content}" for message in messages)


def summed(replies: Sequence[ChatReply]) -> ChatReply:
    """Return what several calls for one question cost together, without any text; of `machine` only energy adds up."""
    sums: dict[str, Any] = {name: sum(getattr(reply, name) for reply in replies) for name in SUMS}
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
    used: dict[str, Any] = {name: getattr(reply, name) for name in (*SUMS, "machine")}
    return Outcome(updates, status, reason, lasting=not reply.transient, **used)


IsVisible = Callable[[str, Question], bool]  # a file, and who asks
_WHOLE = ("name", "reads", "writes", "batch_size", "costly", "identity", "run")
ACCESS = ("question.may_see", "question.namespace")


@dataclass(frozen=True)
class Parts:
    """What the stages of one pipeline share.

    overrides: objects that replace configured modules, by slot.
    prompts: custom ones, by the key of the section that names them.
    retrieval: with the analyzer of the dataset's language, where that is declared and the configuration says `auto`.
    """

    models: ModelsConfig
    query: sections.QueryConfig
    retrieval: sections.RetrievalConfig
    rerank: sections.RerankConfig
    select: sections.SelectConfig
    answer: sections.AnswerConfig
    seed: int
    index: CorpusIndex
    embedder: Embedder
    memory: Memory | None = None
    replayed: Replayed = field(default_factory=Replayed)
    overrides: Mapping[str, Any] = field(default_factory=dict)
    prompts: Mapping[str, ChatTemplate] = field(default_factory=dict)
    conversation: sections.ConversationConfig = field(default_factory=sections.ConversationConfig)
    agent: sections.AgentConfig = field(default_factory=sections.AgentConfig)

    @property
    def selects(self) -> bool:
        """Whether something selects from what the reranker hands on."""
        return self.select.is_on or "select" in self.overrides

    def chat(self, role: str, purpose: str = "") -> ChatModel:
        """Return the chat model of a role of `models`; its calls are booked under `purpose`."""
        return shared.chat_model(self.model(role), purpose)

    def model(self, role: str) -> Any:
        """Return what a role of `models` names, or the object in its place."""
        return self.overrides.get(f"{role}_model", getattr(self.models, role))

    def encoder(self, role: str) -> Any:
        """Return the model of a role of `models` that encodes a text in more than a vector."""
        return shared.model_of(providers.ENCODERS[role], self.model(role))

    def scorer(self, role: str) -> PairScorer:
        """Return the pair scorer of a role of `models`, with its scores remembered where there is a memory."""
        scorer = shared.scorer(role, self.model(role))
        return scorer if self.memory is None else RememberedScorer(scorer, self.memory, self.replayed)


# It yields what custom code is called with, is sent what that returned, and returns what becomes of it. It yields
# nothing where there is nothing to call for, and raises `CustomCodeError` where the slot does not take what it is sent.
Exchange = Generator[tuple[Any, ...], Any, Outcome]


@dataclass(frozen=True)
class CustomStage(BuiltInStage):
    """Call `code` for each question, as `exchange` says of its trace; one without a usable result has failed."""

    kind: str
    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    exchange: Callable[..., Exchange]
    parameters: Mapping[str, Any]
    code: CustomCode
    version: int = 1

    batch_size = 8
    costly = True

    def identity(self) -> Mapping[str, Any]:
        """Kind with its version, code and parameters."""
        named = {"code": self.code, **self.parameters}
        return {"stage": self.kind, "version": self.version, **identity_of(named)}

    def outcome(self, trace: Trace) -> Outcome:
        """Call the code for one trace."""
        try:
            arguments = next(self.exchange(trace, **self.parameters))
        except StopIteration as end:
            return cast(Outcome, end.value)

        def accept(returned: Any) -> Outcome:
            exchange = self.exchange(trace, **self.parameters)
            next(exchange)
            try:
                raise AssertionError(exchange.send(returned))  # it is called for one result alone
            except StopIteration as end:
                return cast(Outcome, end.value)

        return timed_call(lambda: self.code.call(*arguments, accept=accept))


class CheckedStage:
    """A whole stage that somebody brought. What it does wrong costs the questions that it does it to.

    Args:
        stage: theirs.
        code: the stage, as something that is called; its `run` is.
        sets: the fields that the slot must set, which later stages read.
        is_visible: tells whether the asker of a question may see a file.
    """

    def __init__(self, stage: Stage, code: CustomCode, sets: Sequence[str], is_visible: IsVisible) -> None:
        self.code, self._is_visible = code, is_visible
        self.name, self.identity = stage.name, code.identity  # with the digest of their source
        # What is checked for one asker must not be replayed for another.
        self.reads, self.writes = tuple(dict.fromkeys((*stage.reads, *ACCESS))), tuple(stage.writes)
        self.batch_size, self.costly = int(stage.batch_size), bool(stage.costly)
        required, written = ({path.partition(".")[0] for path in paths} for paths in (sets, self.writes))
        if missing := sorted(required - written):
            raise ConfigError(
                f"The {code.what} does not write {' and '.join(missing)}, which later stages read; name it in `writes`."
            )

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Run the batch; where that raises `CustomCodeError`, `run_stage` runs each trace alone."""
        outcomes: list[Outcome] = self.code.call(list(traces), accept=lambda returned: self._accepted(returned, traces))
        return outcomes

    def _accepted(self, returned: Any, traces: Sequence[Trace]) -> list[Outcome]:
        outcomes = list(returned) if isinstance(returned, Sequence) else [returned]
        if strangers := [type(outcome).__name__ for outcome in outcomes if not isinstance(outcome, Outcome)]:
            raise CustomCodeError(f"the {self.code.what} returned {strangers[0]} where an Outcome is due")
        if len(outcomes) != len(traces):
            raise CustomCodeError(f"the {self.code.what} returned {len(outcomes)} outcomes for {len(traces)} questions")
        what = self.code.what
        for outcome, trace in zip(outcomes, traces, strict=True):
            if undeclared := sorted(set(outcome.updates) - set(self.writes)):
                raise ConfigError(
                    f"The {what} writes {', '.join(undeclared)}, which its `writes` do not name; add it there."
                )
            for path, value in outcome.updates.items():
                try:
                    field_type(path).validate_python(value)
                except ValidationError as error:
                    wrong = error.errors()[0]["msg"]
                    raise CustomCodeError(f"the {what} set {path} to what it cannot be: {wrong}") from None
                for record in _records(value):
                    if isinstance(record, Hit) and not all(map(math.isfinite, (record.score, *record.scores.values()))):
                        raise CustomCodeError(f"the {what} set {path} with a score that is no number")
                    if not self._is_visible(record.source, trace.question):
                        raise CustomCodeError(
                            f"the {what} set {path} from {record.source}, which the asker may not see"
                        )
        return outcomes


def stage_of(
    kind: Kind,
    slot: str,
    name: str,
    parts: Parts,
    built_in: Mapping[str, Callable[[], Stage]],
    custom: Callable[[CustomCode], Stage],
) -> Stage:
    """Return the stage of the object of `parts` for `slot`, or of `name`: built in, `custom`, or a whole `Stage`."""
    module = from_object(parts.overrides[slot], kind) if slot in parts.overrides else kind.find(name)
    if slot not in parts.overrides and name in built_in:
        return built_in[name]()
    return module_stage(kind, module, parts.index, custom)


def module_stage(
    kind: Kind, module: Module, index: CorpusIndex, custom: Callable[[CustomCode], Stage], method: str | None = None
) -> Stage:
    """Return the stage that `custom` makes of a module, or of its `method`; a whole `Stage` is held to its contract."""
    declared = getattr(module.value, "stage_kind", kind.name)
    if declared != kind.name:
        raise ConfigError(f"{module.name!r} says that it is a {declared}, and stands where a {kind.name} is due.")
    is_whole = all(hasattr(module.value, name) for name in _WHOLE)
    code = CustomCode(module, f"{kind.name} {module.name!r}", "run" if is_whole else method)
    stage = custom(code)
    return CheckedStage(module.value, code, stage.writes, index.is_visible) if is_whole else stage


def timed_call(call: Callable[..., Outcome], *arguments: Any) -> Outcome:
    """Return what a call for one question gives, or its failure, with the seconds that it took."""
    started = time.perf_counter()
    try:
        outcome = call(*arguments)
    except CustomCodeError as error:
        outcome = Outcome(status="failed", reason=str(error), lasting=False)
    return replace(outcome, seconds=time.perf_counter() - started)


def _records(value: Any) -> Iterator[Hit | Passage]:
    if isinstance(value, Hit | Passage):
        yield value
    elif isinstance(value, Mapping | Sequence) and not isinstance(value, str):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _records(inner)
