"""Hypothetical document embeddings (Gao et al. 2022, "Precise zero-shot dense retrieval without relevance labels").

The route says whose prompt writes the document: the single general one of the paper, or that of the query class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest, Message
from rag_lab.records import Trace
from rag_lab.stages.chat_stage import chat_outcome
from rag_lab.stages.parts import Parts
from rag_lab.stages.query import prompts
from rag_lab.stages.stage import Outcome


@dataclass(frozen=True)
class Hyde:
    """Write a hypothetical document for each question that is routed to one."""

    model: ChatModel
    max_tokens: int
    seed: int = 0

    name: ClassVar[str] = "hyde"
    reads: ClassVar[tuple[str, ...]] = ("search_query", "hyde_route")
    writes: ClassVar[tuple[str, ...]] = ("hypothetical",)
    batch_size: ClassVar[int] = 8
    costly: ClassVar[bool] = True

    def identity(self) -> Mapping[str, Any]:
        """Model, prompt version, length and seed."""
        return {
            "version": 1,
            "prompts": prompts.VERSION,
            "model": self.model.identity(),
            "max_tokens": self.max_tokens,
            "seed": self.seed,
        }

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Ask the model for those questions that are routed to a prompt."""
        replies = iter(self.model.generate(self.requests(traces)))
        return [_outcome(next(replies)) if trace.hyde_route else _not_routed() for trace in traces]

    def requests(self, traces: Sequence[Trace]) -> list[ChatRequest]:
        """Return one request for each trace that is routed to a prompt."""
        return [self._request(trace, trace.hyde_route) for trace in traces if trace.hyde_route]

    def _request(self, trace: Trace, route: str) -> ChatRequest:
        return ChatRequest(
            hyde_messages(trace, route),
            max_tokens=self.max_tokens,
            seed=self.seed + trace.repeat,
        )


def hyde_messages(trace: Trace, route: str) -> tuple[Message, ...]:
    """Return the chat that the model is sent for a trace that is routed to the prompt `route`."""
    return prompts.hyde_messages(prompts.HYDE[route], trace.search_query or trace.question.text)


def _not_routed() -> Outcome:
    return Outcome(reason="not routed to HyDE", seconds=0.0)


def _outcome(reply: ChatReply) -> Outcome:
    text = reply.text.strip()
    if reply.error or not text:
        return chat_outcome(reply, {}, "fallback", f"searched without HyDE: {reply.error or 'the model wrote nothing'}")
    return chat_outcome(reply, {"hypothetical": text})


def by_llm(parts: Parts) -> Hyde:
    """Return the stage that asks the model `models.hyde`."""
    return Hyde(parts.chat("hyde", Hyde.name), parts.query.hyde_max_tokens, parts.seed)
