"""Query understanding: one call gives the class, a self-contained rewrite and the model's own HyDE suggestion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from rag_lab.models.json_repair import RepairError, read_as
from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest
from rag_lab.records import QueryClass, Trace
from rag_lab.stages.chat_stage import chat_outcome
from rag_lab.stages.parts import Parts
from rag_lab.stages.query import prompts
from rag_lab.stages.stage import Outcome


class Understanding(BaseModel):
    """The object that the model returns."""

    model_config = ConfigDict(populate_by_name=True)

    query_class: QueryClass = Field(alias="class")
    rewritten: str = Field(min_length=1)
    hyde: bool


@dataclass(frozen=True)
class LlmUnderstanding:
    """Ask `model` for class, rewrite and HyDE suggestion; a reply that cannot be read is a fallback to none of them."""

    model: ChatModel
    seed: int = 0

    name: ClassVar[str] = "understand"
    reads: ClassVar[tuple[str, ...]] = ("question.text", "question.history")
    writes: ClassVar[tuple[str, ...]] = ("query_class", "proposed_query", "hyde_suggested")
    batch_size: ClassVar[int] = 8
    costly: ClassVar[bool] = True

    def identity(self) -> Mapping[str, Any]:
        """Model, prompt version and seed."""
        return {"version": 1, "prompts": prompts.VERSION, "model": self.model.identity(), "seed": self.seed}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Return one understanding, or a fallback, for each trace."""
        return [_outcome(reply) for reply in self.model.generate(self.requests(traces))]

    def requests(self, traces: Sequence[Trace]) -> list[ChatRequest]:
        """Return one request for each trace."""
        return [
            ChatRequest(
                prompts.understanding_messages(trace.question),
                max_tokens=128,
                seed=self.seed + trace.repeat,
                json_schema=prompts.UNDERSTANDING_SCHEMA,
            )
            for trace in traces
        ]


def _outcome(reply: ChatReply) -> Outcome:
    if reply.error:
        return chat_outcome(reply, {}, "fallback", f"no understanding: {reply.error}")
    try:
        understanding = read_as(reply.text, Understanding)
    except RepairError:
        return chat_outcome(reply, {}, "fallback", f"no understanding: the reply was not the object: {reply.text!r}")
    updates = {
        "query_class": understanding.query_class,
        "proposed_query": understanding.rewritten.strip(),
        "hyde_suggested": understanding.hyde,
    }
    return chat_outcome(reply, updates)


def by_llm(parts: Parts) -> LlmUnderstanding:
    """Return the stage that asks the model `models.understanding`."""
    return LlmUnderstanding(parts.chat("understanding", LlmUnderstanding.name), parts.seed)
