"""Hypothetical document embeddings (Gao et al. 2022, "Precise zero-shot dense retrieval without relevance labels").

The route says whose prompt writes the document: the single general one of the paper, or that of the query class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest, Message
from rag_lab.records import Trace
from rag_lab.stages.chat_stage import chat_outcome, nothing_written, summed
from rag_lab.stages.parts import Parts
from rag_lab.stages.prompts.chat_template import ChatTemplate
from rag_lab.stages.query import prompts
from rag_lab.stages.stage import Outcome

_TEMPERATURE = 0.7  # Gao et al. 2022, section 4.1
_SEEDS_APART = 1_000_003  # so that no document of one repeat is sampled as another repeat's


@dataclass(frozen=True)
class Hyde:
    """Write `n` hypothetical documents for each question that is routed to one.

    One is written greedily; several are sampled, at the temperature of the paper.
    """

    model: ChatModel
    max_tokens: int
    seed: int = 0
    prompt: ChatTemplate | None = None  # in place of those that are built in
    n: int = 1

    name: ClassVar[str] = "hyde"
    reads: ClassVar[tuple[str, ...]] = ("search_query", "hyde_route")
    writes: ClassVar[tuple[str, ...]] = ("hypothetical", "other_hypotheticals")
    batch_size: ClassVar[int] = 8
    costly: ClassVar[bool] = True

    def identity(self) -> Mapping[str, Any]:
        """Model, prompt version, length, seed, and how many are sampled how."""
        found = {
            "version": 1,
            "prompts": self.prompt.digest if self.prompt else prompts.VERSION,
            "model": self.model.identity(),
            "max_tokens": self.max_tokens,
            "seed": self.seed,
        }
        return found if self.n == 1 else {**found, "n": self.n, "temperature": _TEMPERATURE}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Ask the model for those questions that are routed to a prompt."""
        replies = iter(self.model.generate(self.requests(traces)))
        return [_outcome(list(islice(replies, self.n))) if trace.hyde_route else _not_routed() for trace in traces]

    def requests(self, traces: Sequence[Trace]) -> list[ChatRequest]:
        """Return `n` requests for each trace that is routed to a prompt."""
        return [
            self._request(trace, trace.hyde_route, number)
            for trace in traces
            if trace.hyde_route
            for number in range(self.n)
        ]

    def _request(self, trace: Trace, route: str, number: int) -> ChatRequest:
        return ChatRequest(
            hyde_messages(trace, route, self.prompt),
            max_tokens=self.max_tokens,
            temperature=0.0 if self.n == 1 else _TEMPERATURE,
            seed=self.seed + trace.repeat + number * _SEEDS_APART,
        )


def hyde_messages(trace: Trace, route: str, prompt: ChatTemplate | None = None) -> tuple[Message, ...]:
    """Return the chat that the model is sent for a trace that is routed to the prompt `route`, or by one's own."""
    query = trace.search_query or trace.question.text
    if prompt is not None:
        return prompt.messages({"question": query, "query_class": route})
    return prompts.hyde_messages(prompts.HYDE[route], query)


def _not_routed() -> Outcome:
    return Outcome(reason="not routed to HyDE", seconds=0.0)


def _outcome(replies: Sequence[ChatReply]) -> Outcome:
    """Return what was written, and what all calls cost; a call that gave nothing is said."""
    texts = [text for reply in replies if not reply.error and (text := reply.text.strip())]
    lost = next(
        (reply.error or nothing_written(reply) for reply in replies if reply.error or not reply.text.strip()), ""
    )
    whole = summed(replies)
    if not texts:
        return chat_outcome(whole, {}, "fallback", f"searched without HyDE: {lost}")
    several = {"other_hypotheticals": tuple(texts[1:])} if len(replies) > 1 else {}
    reason = f"{len(texts)} of {len(replies)} documents were written: {lost}" if lost else ""
    return chat_outcome(whole, {"hypothetical": texts[0], **several}, reason=reason)


def by_llm(parts: Parts) -> Hyde:
    """Return the stage that asks the model `models.hyde`."""
    query, model = parts.query, parts.chat("hyde", Hyde.name)
    return Hyde(model, query.hyde_max_tokens, parts.seed, parts.prompts.get("hyde"), query.hyde_n)
