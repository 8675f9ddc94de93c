"""Generation: ask the model for an answer with citations, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest
from rag_lab.records import Trace
from rag_lab.stages.answer import prompts
from rag_lab.stages.chat_stage import chat_outcome, written
from rag_lab.stages.parts import Parts
from rag_lab.stages.stage import Outcome
from rag_lab.stages.switched_off import Off

_MORE_ROOM = "the reply was cut off while thinking: raise answer.thinking_tokens"
_NO_ROOM = "the reply was cut off while thinking: set answer.thinking, which gives answer.thinking_tokens of room to it"


@dataclass(frozen=True)
class Generate:
    """Answer each question from its context, in the user's own wording.

    `thinking_tokens` is room for thinking before a reply of `max_tokens`; 0 asks for a reply without thinking.
    """

    model: ChatModel
    max_tokens: int
    temperature: float
    thinking_tokens: int = 0
    seed: int = 0

    name: ClassVar[str] = "generate"
    reads: ClassVar[tuple[str, ...]] = ("question.text", "question.history", "passages")
    writes: ClassVar[tuple[str, ...]] = ("prompt", "raw_text")
    batch_size: ClassVar[int] = 4
    costly: ClassVar[bool] = True

    def identity(self) -> Mapping[str, Any]:
        """Model, prompt version and sampling."""
        return {
            "version": 2,
            "prompts": prompts.VERSION,
            "model": self.model.identity(),
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "thinking_tokens": self.thinking_tokens,
            "seed": self.seed,
        }

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Return the raw reply of each trace."""
        requests = self.requests(traces)
        replies = self.model.generate(requests)
        return [_outcome(request, reply) for request, reply in zip(requests, replies, strict=True)]

    def requests(self, traces: Sequence[Trace]) -> list[ChatRequest]:
        """Return one request for each trace."""
        return [self._request(trace) for trace in traces]

    def _request(self, trace: Trace) -> ChatRequest:
        question = trace.question
        return ChatRequest(
            prompts.answer_messages(question.text, question.history, trace.passages),
            max_tokens=self.thinking_tokens + self.max_tokens,
            temperature=self.temperature,
            seed=self.seed + trace.repeat,
            # Thinking stands before the object, so the output cannot be held to the schema from its first token.
            json_schema=None if self.thinking_tokens else prompts.SCHEMA,
            thinking=self.thinking_tokens > 0,
        )


def _outcome(request: ChatRequest, reply: ChatReply) -> Outcome:
    prompt = written(request.messages)
    if reply.error:
        return chat_outcome(reply, {"prompt": prompt}, "failed", reply.error)
    raw = f"<think>{reply.thinking}</think>{reply.text}" if reply.thinking else reply.text
    updates = {"prompt": prompt, "raw_text": raw}
    if _ended_in_thought(request, reply):
        return chat_outcome(reply, updates, "failed", _MORE_ROOM if request.thinking else _NO_ROOM)
    return chat_outcome(reply, updates)


def _ended_in_thought(request: ChatRequest, reply: ChatReply) -> bool:
    """Tell whether the tokens ran out before the answer began; some models' thinking has no opening mark."""
    unmarked = request.thinking and not reply.thinking and "{" not in reply.text
    return reply.truncated and (not reply.text or unmarked)


def by_llm(parts: Parts) -> Generate:
    """Return the stage that asks the model `models.generation`."""
    answer, model = parts.answer, parts.chat("generation", Generate.name)
    thinking_tokens = answer.thinking_tokens if answer.thinking else 0
    return Generate(model, answer.max_tokens, answer.temperature, thinking_tokens, parts.seed)


def unanswered(_: Parts) -> Off:
    """Return the stage that answers nothing."""
    return Off(Generate.name)
