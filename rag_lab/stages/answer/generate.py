"""Generation: ask the model for an answer with citations, as JSON, or for the answer alone, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_lab._kit.custom_code import CustomCodeError
from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest, Message
from rag_lab.records import Answer, Citation, Trace
from rag_lab.stages.answer import prompts
from rag_lab.stages.answer.parse import Parse, checked_citations, is_abstention
from rag_lab.stages.chat_stage import chat_outcome, written
from rag_lab.stages.custom import CustomStage, stage_of
from rag_lab.stages.kinds import READERS
from rag_lab.stages.parts import Parts
from rag_lab.stages.prompts.chat_template import ChatTemplate
from rag_lab.stages.stage import BuiltInStage, Off, Outcome, Stage

_MORE_ROOM = "the reply was cut off while thinking: raise answer.thinking_tokens"
_NO_ROOM = "the reply was cut off while thinking: set answer.thinking, which gives answer.thinking_tokens of room to it"
_NO_REPLY = "the model thought and ended without a reply"
_NO_THOUGHT = "the model was asked to think and did not"


def answer_stages(parts: Parts) -> tuple[Stage, ...]:
    """Return what answers from the context; nothing where answers are switched off."""
    if not parts.answer.is_on and "reader" not in parts.overrides:
        return ()
    stage = stage_of(READERS, "reader", parts.answer.name, parts, CustomReader)
    as_text = isinstance(stage, Generate) and stage.as_text
    return (stage,) if "answer" in stage.writes else (stage, Parse(as_text))


@dataclass(frozen=True)
class Generate(BuiltInStage):
    """Answer each question from its context, in the user's own wording.

    `thinking_tokens` is the budget of thinking before a reply of `max_tokens`; 0 asks for a reply without thinking.
    Sampling that is None is left to the model's card.
    """

    model: ChatModel
    max_tokens: int
    temperature: float
    thinking_tokens: int = 0
    seed: int = 0
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    closed_book: bool = False  # ask for what the model knows: there are no passages, on purpose
    prompt: ChatTemplate | None = None  # in place of the one that is built in
    as_text: bool = False  # ask for the answer alone

    VERSION = 3
    PROMPTS = prompts.VERSION
    name = "generate"
    reads = ("question.text", "question.history", "remembered", "passages")
    writes = ("prompt", "raw_text")
    batch_size = 4
    costly = True

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Return the raw reply of each trace."""
        requests = self.requests(traces)
        replies = self.model.generate(requests)
        return [_outcome(request, reply) for request, reply in zip(requests, replies, strict=True)]

    def requests(self, traces: Sequence[Trace]) -> list[ChatRequest]:
        """Return one request for each trace."""
        return [
            ChatRequest(
                self._messages(trace),
                max_tokens=self.max_tokens,
                temperature=self.temperature,
                seed=self.seed + trace.repeat,
                json_schema=None if self.as_text else prompts.SCHEMA,  # of the reply, whatever the model thinks before
                thinking_tokens=self.thinking_tokens,
                top_p=self.top_p,
                top_k=self.top_k,
                min_p=self.min_p,
            )
            for trace in traces
        ]

    def _messages(self, trace: Trace) -> tuple[Message, ...]:
        question, said = trace.question, trace.remembered
        if self.closed_book:
            return prompts.closed_book_messages(question.text, said)
        if self.prompt is None:
            return prompts.answer_messages(question.text, said, trace.passages, self.as_text)
        values = {
            "question": question.text,
            "history": said.turns,
            "summary": said.summary,
            "passages": trace.passages,
            "context": prompts.render_passages(trace.passages),
            "not_found": prompts.NOT_FOUND,
        }
        return self.prompt.messages(values)


def _outcome(request: ChatRequest, reply: ChatReply) -> Outcome:
    prompt = written(request.messages)
    if reply.error:
        return chat_outcome(reply, {"prompt": prompt}, "failed", reply.error)
    raw = f"<think>{reply.thinking}</think>{reply.text}" if reply.thinking else reply.text
    updates = {"prompt": prompt, "raw_text": raw}
    if _ended_in_thought(request, reply):
        return chat_outcome(reply, updates, "failed", _MORE_ROOM if request.thinking else _NO_ROOM)
    if reply.thinking and not reply.text:
        return chat_outcome(reply, updates, "failed", _NO_REPLY)
    if request.thinking and not reply.has_thought:
        return chat_outcome(reply, updates, "fallback", _NO_THOUGHT)
    return chat_outcome(reply, updates)


def _ended_in_thought(request: ChatRequest, reply: ChatReply) -> bool:
    """Tell whether the tokens ran out before the answer began; some models' thinking has no opening mark."""
    unmarked = request.thinking and not reply.thinking and "{" not in reply.text
    return reply.truncated and (not reply.text or unmarked)


def by_llm(parts: Parts) -> Generate:
    """Return the stage that asks the model `models.generation`."""
    answer, model = parts.answer, parts.chat("generation", Generate.name)
    thinking_tokens = answer.thinking_tokens if answer.thinking else 0
    is_closed = answer.context == "none" and "context" not in parts.overrides
    own = None if is_closed else parts.prompts.get("answer")  # which asks for what stands in the passages
    stage = Generate(model, answer.max_tokens, answer.temperature, thinking_tokens, parts.seed)
    stage = replace(stage, closed_book=is_closed, prompt=own)
    if not (answer.thinking or answer.temperature):  # greedy: nothing is sampled
        return stage
    return replace(stage, top_p=answer.top_p, top_k=answer.top_k, min_p=answer.min_p)


def by_text(parts: Parts) -> Generate:
    """Return the stage that asks it for the answer alone; a closed book is asked as `by_llm` asks it."""
    stage = by_llm(parts)
    return replace(stage, as_text=not stage.closed_book)


def unanswered(_: Parts) -> Off:
    """Return the stage that answers nothing."""
    return Off(Generate.name)


class CustomReader(CustomStage):
    """`(question, passages) -> str or Answer`; it cites passages by number, from 1."""

    name = "generate"
    reads = ("question.text", "passages")
    writes = ("answer",)

    def arguments(self, trace: Trace) -> tuple[Any, ...] | Outcome:
        """Return the question and the texts."""
        return trace.question.text, [passage.text for passage in trace.passages]

    def accept(self, trace: Trace, returned: Any) -> Outcome:
        """Set the answer; citations that name no passage of the context are kept as rejected, as a model's are."""
        answer = Answer(returned) if isinstance(returned, str) else returned
        if not isinstance(answer, Answer) or not isinstance(answer.text, str):
            raise CustomCodeError(f"the reader returned {type(returned).__name__} where text or an Answer is due")
        text = answer.text.strip()
        if not text:
            raise CustomCodeError("the answer of the reader is empty")
        cited = [  # as the parser reads them
            ({"passage": one.number, "quote": one.quote} if one.quote else one.number)
            if isinstance(one, Citation)
            else one
            for one in answer.citations
        ]
        accepted, rejected = checked_citations(cited, trace.passages)
        abstained = answer.abstained or is_abstention(text)
        refused = (*answer.rejected_citations, *rejected)
        return Outcome({"answer": Answer(text, accepted, refused, answer.thinking, abstained)})
