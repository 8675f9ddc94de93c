"""Query understanding: one call gives the class, a self-contained rewrite and the model's own HyDE suggestion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from rag_lab.models.json_repair import RepairError, read_as
from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest, Message
from rag_lab.records import QUERY_CLASSES, QueryClass, Trace
from rag_lab.stages.chat_stage import chat_outcome, nothing_written
from rag_lab.stages.parts import Parts
from rag_lab.stages.prompts.chat_template import ChatTemplate
from rag_lab.stages.query import prompts
from rag_lab.stages.stage import Outcome

NOT_ASKED = "no conversation before the question"


class Understanding(BaseModel):
    """The object that the model returns."""

    model_config = ConfigDict(populate_by_name=True)

    query_class: QueryClass = Field(alias="class")
    rewritten: str = Field(min_length=1)
    hyde: bool


@dataclass(frozen=True)
class LlmUnderstanding:
    """Ask `model` for class, rewrite and HyDE suggestion; a reply that cannot be read is a fallback to none of them.

    `only_follow_ups` asks about questions with a conversation alone.
    """

    model: ChatModel
    seed: int = 0
    prompt: ChatTemplate | None = None  # in place of the one that is built in
    only_follow_ups: bool = False

    name: ClassVar[str] = "understand"
    reads: ClassVar[tuple[str, ...]] = ("question.text", "question.history", "remembered")
    writes: ClassVar[tuple[str, ...]] = ("query_class", "proposed_query", "hyde_suggested")
    batch_size: ClassVar[int] = 8
    costly: ClassVar[bool] = True

    def identity(self) -> Mapping[str, Any]:
        """Model, prompt version, seed, and of which questions it is asked."""
        wording = self.prompt.digest if self.prompt else prompts.VERSION
        found = {"version": 1, "prompts": wording, "model": self.model.identity(), "seed": self.seed}
        return {**found, "only_follow_ups": True} if self.only_follow_ups else found

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Return one understanding, or a fallback, for each trace."""
        replies = iter(self.model.generate(self.requests(traces)))
        return [_outcome(next(replies)) if self._asks(trace) else _not_asked() for trace in traces]

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
        asked, said = trace.question.text, trace.remembered
        if self.prompt is None:
            return prompts.understanding_messages(asked, said)
        values = {"question": asked, "history": said.turns, "summary": said.summary, "classes": QUERY_CLASSES}
        return self.prompt.messages(values)


def _not_asked() -> Outcome:
    return Outcome(reason=NOT_ASKED, seconds=0.0)


def _outcome(reply: ChatReply) -> Outcome:
    if reply.error:
        return chat_outcome(reply, {}, "fallback", f"no understanding: {reply.error}")
    if reply.closed_early:  # what it had not come to is made up
        return chat_outcome(reply, {}, "fallback", f"no understanding: the reply was cut off: {reply.text!r}")
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
    model = parts.chat("understanding", LlmUnderstanding.name)
    return LlmUnderstanding(model, parts.seed, parts.prompts.get("understanding"), parts.query.asks_only_follow_ups)
