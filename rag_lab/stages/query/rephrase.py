"""Multi-query: the same question in other words, each searched, so that one wording does not decide what is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from rag_lab.models.json_repair import RepairError, read_as
from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest
from rag_lab.records import Trace
from rag_lab.stages.chat_stage import chat_outcome, nothing_written
from rag_lab.stages.parts import Parts
from rag_lab.stages.prompts.chat_template import ChatTemplate
from rag_lab.stages.query import prompts
from rag_lab.stages.stage import BuiltInStage, Off, Outcome

REPHRASE = "rephrase"
_TOKENS_PER_PHRASING = 48


def rephrase_stage(parts: Parts) -> Rephrase | Off:
    """Return what writes other phrasings of the question."""
    if not parts.query.phrasings:
        return Off(REPHRASE)
    chat = parts.chat("understanding", REPHRASE)
    return Rephrase(chat, parts.query.phrasings, parts.seed, parts.prompts.get("phrasings"))


class Phrasings(BaseModel):
    """The object that the model returns."""

    phrasings: list[str]


@dataclass(frozen=True)
class Rephrase(BuiltInStage):
    """Ask `model` for `n` other phrasings of what is searched; without any, only the search query is searched."""

    model: ChatModel
    n: int
    seed: int = 0
    prompt: ChatTemplate | None = None  # in place of the one that is built in

    PROMPTS = prompts.VERSION
    name = REPHRASE
    reads = ("search_query",)
    writes = ("phrasings",)
    batch_size = 8
    costly = True

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Return the phrasings, or a fallback, for each trace."""
        queries = [trace.search_query or trace.question.text for trace in traces]
        replies = self.model.generate(self.requests(traces))
        return [self._outcome(query, reply) for query, reply in zip(queries, replies, strict=True)]

    def requests(self, traces: Sequence[Trace]) -> list[ChatRequest]:
        """Return one request for each trace."""
        return [
            ChatRequest(
                self.prompt.messages({"question": query, "n": self.n})
                if self.prompt
                else prompts.phrasing_messages(query, self.n),
                max_tokens=_TOKENS_PER_PHRASING * self.n,
                seed=self.seed + trace.repeat,
                json_schema=prompts.phrasing_schema(self.n),
            )
            for trace in traces
            for query in [trace.search_query or trace.question.text]
        ]

    def _outcome(self, query: str, reply: ChatReply) -> Outcome:
        if reply.error:
            return chat_outcome(reply, {}, "fallback", f"no other phrasings: {reply.error}")
        try:
            found = read_as(reply.text, Phrasings).phrasings
        except RepairError:
            why = f"the reply was not the object: {reply.text!r}" if reply.text else nothing_written(reply)
            return chat_outcome(reply, {}, "fallback", f"no other phrasings: {why}")
        # Those that are not blank, the query, or each other, in order.
        texts = [" ".join(text.split()) for text in (query, *found)]
        distinct = {text.casefold(): text for text in reversed(texts)}
        others = [text for key, text in reversed(distinct.items()) if key and key != texts[0].casefold()]
        phrasings = others[: self.n]
        if not phrasings:
            return chat_outcome(reply, {}, "fallback", "no other phrasings: the model repeated the question")
        return chat_outcome(reply, {"phrasings": tuple(phrasings)})
