"""What the stages of one pipeline share, and modules that somebody brought to a slot of it.

A module is a function, an instance that is called like one, or a whole `Stage`, which is held to its contract. It is
called for one question at a time, checked, and remembered.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import ValidationError

from rag_lab._kit.custom_code import CustomCode, CustomCodeError
from rag_lab._kit.registry import Kind, Module, from_object
from rag_lab.corpus.corpus_index import CorpusIndex
from rag_lab.errors import ConfigError
from rag_lab.memory.results import Memory, Replayed
from rag_lab.models import shared
from rag_lab.models.config import ModelsConfig
from rag_lab.models.protocols import ChatModel, Embedder, PairScorer
from rag_lab.models.remembered_vectors import RememberedScorer
from rag_lab.records import Hit, Passage, Question, Trace
from rag_lab.stages import config as sections
from rag_lab.stages.prompts.chat_template import ChatTemplate
from rag_lab.stages.stage import BuiltInStage, Outcome, Stage, field_type

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

    def scorer(self, role: Literal["cross_encoder", "likelihood"]) -> PairScorer:
        """Return the pair scorer of a role of `models`, with its scores remembered where there is a memory."""
        find = shared.cross_encoder if role == "cross_encoder" else shared.query_likelihood
        scorer = find(self.model(role))
        return scorer if self.memory is None else RememberedScorer(scorer, self.memory, self.replayed)


@dataclass(frozen=True)
class CustomStage(BuiltInStage):
    """Call `code` for each question. A call that gives nothing usable fails its question.

    A subclass says for its slot what the code is called with, and what becomes of its results.
    """

    code: CustomCode

    batch_size = 8
    costly = True

    def arguments(self, trace: Trace) -> tuple[Any, ...] | Outcome:
        """Return what the code is called with, or the outcome where there is nothing to call it for."""
        return (trace.question.text,)

    def accept(self, trace: Trace, returned: Any) -> Outcome:
        """Return what becomes of a result; raise `CustomCodeError` where it is not what this slot takes."""
        raise NotImplementedError

    def outcome(self, trace: Trace) -> Outcome:
        """Call the code for one trace."""
        arguments = self.arguments(trace)
        if isinstance(arguments, Outcome):
            return arguments
        return timed_call(lambda: self.code.call(*arguments, accept=lambda returned: self.accept(trace, returned)))


class CheckedStage:
    """A whole stage that somebody brought. What it does wrong costs the questions that it does it to.

    Args:
        stage: theirs.
        code: the stage, as something that is called; its `run` is.
        sets: the fields that the slot must set, which later stages read.
        is_visible: tells whether the asker of a question may see a file.
    """

    def __init__(self, stage: Stage, code: CustomCode, sets: Sequence[str], is_visible: IsVisible) -> None:
        self._stage, self.code, self._is_visible = stage, code, is_visible
        self.name = stage.name
        # What is checked for one asker must not be replayed for another.
        self.reads, self.writes = tuple(dict.fromkeys((*stage.reads, *ACCESS))), tuple(stage.writes)
        self.batch_size, self.costly = int(stage.batch_size), bool(stage.costly)
        required, written = ({path.partition(".")[0] for path in paths} for paths in (sets, self.writes))
        if missing := sorted(required - written):
            raise ConfigError(
                f"The {code.what} does not write {' and '.join(missing)}, which later stages read; name it in `writes`."
            )

    def identity(self) -> Mapping[str, Any]:
        """Theirs, with the digest of their source."""
        return self.code.identity()

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
        for outcome, trace in zip(outcomes, traces, strict=True):
            self._check(outcome.updates, trace.question)
        return outcomes

    def _check(self, updates: Mapping[str, Any], question: Question) -> None:
        what = self.code.what
        if undeclared := sorted(set(updates) - set(self.writes)):
            raise ConfigError(
                f"The {what} writes {', '.join(undeclared)}, which its `writes` do not name; add it there."
            )
        for path, value in updates.items():
            try:
                field_type(path).validate_python(value)
            except ValidationError as error:
                wrong = error.errors()[0]["msg"]
                raise CustomCodeError(f"the {what} set {path} to what it cannot be: {wrong}") from None
            for record in _records(value):
                if isinstance(record, Hit) and not all(map(math.isfinite, (record.score, *record.scores.values()))):
                    raise CustomCodeError(f"the {what} set {path} with a score that is no number")
                if not self._is_visible(record.source, question):
                    raise CustomCodeError(f"the {what} set {path} from {record.source}, which the asker may not see")


def stage_of(
    kind: Kind,
    slot: str,
    name: str,
    parts: Parts,
    built_in: Mapping[str, Callable[[], Stage]],
    custom: Callable[[CustomCode], Stage],
) -> Stage:
    """Return the stage of the object that `parts` holds for `slot`, else the one that `name` names.

    `built_in` makes what is built in, by name. Another module is called as the stage does that `custom` makes of it;
    it may be a whole `Stage` instead.
    """
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


def timed_call(call: Callable[[], Outcome]) -> Outcome:
    """Return what a call for one question gives, or its failure, with the seconds that it took."""
    started = time.perf_counter()
    try:
        outcome = call()
    except CustomCodeError as error:
        outcome = failed_call(error)
    return replace(outcome, seconds=time.perf_counter() - started)


def failed_call(error: CustomCodeError) -> Outcome:
    """Return the outcome of a question that a module gave nothing usable for."""
    return Outcome(status="failed", reason=str(error), lasting=False)


def _records(value: Any) -> Iterator[Hit | Passage]:
    if isinstance(value, Hit | Passage):
        yield value
    elif isinstance(value, Mapping | Sequence) and not isinstance(value, str):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _records(inner)
