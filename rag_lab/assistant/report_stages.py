"""What a report is written by: an outline of the topic, a draft of each section, and its review (Homer's graph)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel

from rag_lab.models.protocols import ChatReply, ChatRequest, Message
from rag_lab.records import Trace
from rag_lab.stages.chat_template import SHIPPED_PROMPTS, ChatTemplate
from rag_lab.stages.context import render_passages
from rag_lab.stages.stage import ChatStage, Outcome, chat_outcome, nothing_written, object_schema, shipped_chat, written
from rag_lab.stages.understand import read_object

Style = Literal["technical", "general"]
VERSION = 1  # of the wording below: results are remembered by it


class Outline(BaseModel):
    """The object that the model returns."""

    entries: list[str]


@dataclass(frozen=True)
class WriteOutline(ChatStage):
    """Ask for `parts` titles; they become the answer of the trace, a line a title."""

    parts: int
    seed: int = 0
    prompt: ChatTemplate | None = None  # in place of the one that is built in

    PROMPTS = VERSION
    name = "outline"
    reads = ("question.text", "passages")
    writes = ("raw_text",)

    def requests_for(self, trace: Trace) -> list[ChatRequest]:
        """Return the request for one topic."""
        topic, context = trace.question.text, render_passages(trace.passages)
        values = {"topic": topic, "parts": self.parts, "context": context, "passages": trace.passages}
        asked = f"Topic: {topic}\n\nSections: {self.parts}\n\nPassages:\n{context or 'none'}"
        messages = self.prompt.messages(values) if self.prompt else shipped_chat("outline", asked)
        schema = object_schema(entries={"type": "array", "items": {"type": "string"}, "maxItems": self.parts})
        return [ChatRequest(messages, 48 * self.parts, seed=self.seed + trace.repeat, json_schema=schema)]

    def read(self, trace: Trace, requests: Sequence[ChatRequest], replies: Sequence[ChatReply]) -> Outcome:
        """Keep titles that are not blank, each once, and no more than were asked for, as the record says."""
        found = read_object(replies[0], Outline)
        if isinstance(found, str):
            return chat_outcome(replies[0], {}, "failed", f"there is no outline: {found}")
        titles = [*dict.fromkeys(title for entry in found.entries if (title := " ".join(entry.split())))]
        kept = titles[: self.parts]
        reason = f"{len(titles)} titles were written; the first {len(kept)} are kept" if len(titles) > len(kept) else ""
        return chat_outcome(replies[0], {"raw_text": "\n".join(kept)}, "fallback" if reason else "ok", reason)


@dataclass(frozen=True)
class _WriteText(ChatStage):
    """Ask for the text of one section; the question of the trace is its title."""

    topic: str
    max_tokens: int
    seed: int = 0
    prompt: ChatTemplate | None = None

    PROMPTS = VERSION
    writes = ("prompt", "raw_text")

    def messages(self, trace: Trace) -> tuple[Message, ...]:
        """Return what is asked for one section."""
        raise NotImplementedError

    def requests_for(self, trace: Trace) -> list[ChatRequest]:
        """Return the request for one section."""
        return [ChatRequest(self.messages(trace), self.max_tokens, seed=self.seed + trace.repeat)]

    def read(self, trace: Trace, requests: Sequence[ChatRequest], replies: Sequence[ChatReply]) -> Outcome:
        """Keep the text."""
        reply, prompt = replies[0], written(requests[0].messages)
        if reply.error or not reply.text.strip():
            return chat_outcome(reply, {"prompt": prompt}, "failed", reply.error or nothing_written(reply))
        return chat_outcome(reply, {"prompt": prompt, "raw_text": reply.text.strip()})


@dataclass(frozen=True)
class WriteDraft(_WriteText):
    """Ask for a draft from the passages."""

    style: Style = "technical"

    name = "section"
    reads = ("question.text", "passages")

    def messages(self, trace: Trace) -> tuple[Message, ...]:
        """Return topic, title and passages."""
        title, context = trace.question.text, render_passages(trace.passages)
        values = {"topic": self.topic, "section": title, "context": context, "passages": trace.passages}
        if self.prompt:
            return self.prompt.messages(values)
        asked = f"Report: {self.topic}\nSection: {title}\n\nPassages:\n{context or 'none'}"
        return shipped_chat("section", asked, style=SHIPPED_PROMPTS["section"]["styles"][self.style])


@dataclass(frozen=True)
class Review(_WriteText):
    """Ask for an improved text of the draft, without the passages."""

    name = "review"
    reads = ("question.text", "raw_text")

    def messages(self, trace: Trace) -> tuple[Message, ...]:
        """Return topic, title and draft."""
        title, draft = trace.question.text, trace.raw_text or ""
        if self.prompt:
            return self.prompt.messages({"topic": self.topic, "section": title, "draft": draft})
        asked = f"Report: {self.topic}\nSection: {title}\n\nDraft:\n{draft}"
        return shipped_chat("review", asked)


def section_trace(trace: Trace, title: str) -> Trace:
    """Return a trace that has found nothing yet, of the same asker, for a section."""
    return Trace(replace(trace.question, text=title, evidence=(), answers=(), history=()), trace.repeat)
