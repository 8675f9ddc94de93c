"""Query understanding: one call gives the class, a self-contained rewrite and the model's own HyDE suggestion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_lab._kit.config_file import complaint_and_value, key_of
from rag_lab._kit.custom_code import CustomCodeError
from rag_lab.models.json_repair import RepairError, read_as
from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest, Message
from rag_lab.records import QUERY_CLASSES, QueryClass, Trace
from rag_lab.stages.chat_stage import chat_outcome, nothing_written
from rag_lab.stages.custom import CustomStage, stage_of
from rag_lab.stages.kinds import UNDERSTANDINGS
from rag_lab.stages.parts import Parts
from rag_lab.stages.prompts.chat_template import ChatTemplate
from rag_lab.stages.query import prompts
from rag_lab.stages.stage import BuiltInStage, Off, Outcome, Stage

UNDERSTAND = "understand"
NOT_ASKED = "no conversation before the question"


def understand_stage(parts: Parts) -> Stage:
    """Return what understands the question."""
    if not parts.query.understands and UNDERSTAND not in parts.overrides:
        return Off(UNDERSTAND)
    return stage_of(UNDERSTANDINGS, UNDERSTAND, parts.query.understanding, parts, CustomUnderstanding)


class Understanding(BaseModel):
    """The object that the model returns."""

    model_config = ConfigDict(populate_by_name=True)

    query_class: QueryClass = Field(alias="class")
    rewritten: str = Field(min_length=1)
    hyde: bool


@dataclass(frozen=True)
class LlmUnderstanding(BuiltInStage):
    """Ask `model` for class, rewrite and HyDE suggestion; a reply that cannot be read is a fallback to none of them.

    `only_follow_ups` asks about questions with a conversation alone.
    """

    model: ChatModel
    seed: int = 0
    prompt: ChatTemplate | None = None  # in place of the one that is built in
    only_follow_ups: bool = False

    PROMPTS = prompts.VERSION
    name = UNDERSTAND
    reads = ("question.text", "question.history", "remembered")
    writes = ("query_class", "proposed_query", "hyde_suggested")
    batch_size = 8
    costly = True

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Return one understanding, or a fallback, for each trace."""
        replies = iter(self.model.generate(self.requests(traces)))
        not_asked = Outcome(reason=NOT_ASKED, seconds=0.0)
        return [_outcome(next(replies)) if self._asks(trace) else not_asked for trace in traces]

    def requests(self, traces: Sequence[Trace]) -> list[ChatRequest]:
        """Return one request for each trace that the model is asked about."""
        return [
            ChatRequest(
                self._messages(trace),
                max_tokens=128,
                seed=self.seed + trace.repeat,
                json_schema=prompts.UNDERSTANDING_SCHEMA,
            )
            for trace in traces
            if self._asks(trace)
        ]

    def _asks(self, trace: Trace) -> bool:
        return bool(trace.question.history) or not self.only_follow_ups

    def _messages(self, trace: Trace) -> tuple[Message, ...]:
        text, said = trace.question.text, trace.remembered
        if self.prompt is None:
            return prompts.understanding_messages(text, said)
        values = {"question": text, "history": said.turns, "summary": said.summary, "classes": QUERY_CLASSES}
        return self.prompt.messages(values)


def _outcome(reply: ChatReply) -> Outcome:
    if reply.error:
        return chat_outcome(reply, {}, "fallback", f"no understanding: {reply.error}")
    try:
        understanding = read_as(reply.text, Understanding)
    except RepairError:
        found = f"the reply was not the object: {reply.text!r}" if reply.text else nothing_written(reply)
        return chat_outcome(reply, {}, "fallback", f"no understanding: {found}")
    updates = {
        "query_class": understanding.query_class,
        "proposed_query": understanding.rewritten.strip(),
        "hyde_suggested": understanding.hyde,
    }
    return chat_outcome(reply, updates)


def by_llm(parts: Parts) -> LlmUnderstanding:
    """Return the stage that asks the model `models.understanding`."""
    model = parts.chat("understanding", UNDERSTAND)
    return LlmUnderstanding(model, parts.seed, parts.prompts.get("understanding"), parts.query.asks_only_follow_ups)


class _Returned(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    query_class: QueryClass | None = Field(None, alias="class")
    rewrite: str | None = None
    hyde: bool | None = None


class CustomUnderstanding(CustomStage):
    """`(question) -> {"class", "rewrite", "hyde"}`, of which any may be left out, and then stays open."""

    name = UNDERSTAND
    reads = ("question.text",)
    writes = ("query_class", "proposed_query", "hyde_suggested")

    def arguments(self, trace: Trace) -> tuple[Any, ...] | Outcome:
        """Return the question."""
        return (trace.question.text,)

    def accept(self, trace: Trace, returned: Any) -> Outcome:
        """Set what was returned."""
        try:
            found = _Returned.model_validate(returned)
        except ValidationError as error:
            detail = error.errors()[0]
            wrong = f"{key_of(detail)} {complaint_and_value(detail)}".strip()
            raise CustomCodeError(f'the understanding is no {{"class", "rewrite", "hyde"}}: {wrong}') from None
        proposed = (found.rewrite or "").strip() or None
        return Outcome(
            {"query_class": found.query_class, "proposed_query": proposed, "hyde_suggested": found.hyde},
        )
