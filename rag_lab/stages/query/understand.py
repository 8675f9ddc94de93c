"""What a chat model makes of a question: its class, a self-contained rewrite and a HyDE suggestion; other phrasings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_lab._kit.config_file import complaint_and_value, key_of
from rag_lab._kit.custom_code import CustomCodeError
from rag_lab.models.json_repair import Model, RepairError, read_as
from rag_lab.models.protocols import ChatReply, ChatRequest
from rag_lab.records import QUERY_CLASSES, QueryClass, Trace
from rag_lab.stages.kinds import FOLLOW_UPS, UNDERSTANDINGS
from rag_lab.stages.parts import CustomStage, Parts, stage_of
from rag_lab.stages.prompts.chat_template import ChatTemplate
from rag_lab.stages.query import prompts
from rag_lab.stages.stage import ChatStage, Off, Outcome, Stage, chat_outcome, nothing_written

UNDERSTAND = "understand"
REPHRASE = "rephrase"
NOT_ASKED = "no conversation before the question"
_TOKENS_PER_PHRASING = 48


def understand_stage(parts: Parts) -> Stage:
    """Return what understands the question."""
    query = parts.query
    only_follow_ups = query.rewrite == FOLLOW_UPS and query.hyde not in ("classified", "suggested")
    if not query.understands and UNDERSTAND not in parts.overrides:
        return Off(UNDERSTAND)
    return stage_of(
        UNDERSTANDINGS,
        UNDERSTAND,
        query.understanding,
        parts,
        {
            "llm": lambda: LlmUnderstanding(
                parts.chat("understanding", UNDERSTAND),
                parts.seed,
                parts.prompts.get("understanding"),
                only_follow_ups,
            )
        },
        CustomUnderstanding,
    )


def rephrase_stage(parts: Parts) -> Stage:
    """Return what writes other phrasings of the question."""
    if not parts.query.phrasings:
        return Off(REPHRASE)
    chat = parts.chat("understanding", REPHRASE)
    return Rephrase(chat, parts.query.phrasings, parts.seed, parts.prompts.get("phrasings"))


class Understanding(BaseModel):
    """The object that the model returns."""

    model_config = ConfigDict(populate_by_name=True)

    query_class: QueryClass = Field(alias="class")
    rewritten: str = Field(min_length=1)
    hyde: bool


@dataclass(frozen=True)
class LlmUnderstanding(ChatStage):
    """Ask for class, rewrite and HyDE suggestion; a reply that cannot be read is a fallback to none of them.

    `only_follow_ups` asks about questions with a conversation alone.
    """

    seed: int = 0
    prompt: ChatTemplate | None = None  # in place of the one that is built in
    only_follow_ups: bool = False

    PROMPTS = prompts.VERSION
    name = UNDERSTAND
    reads = ("question.text", "question.history", "remembered")
    writes = ("query_class", "proposed_query", "hyde_suggested")

    def requests_for(self, trace: Trace) -> list[ChatRequest]:
        """Return the request for one trace, if the model is asked about it."""
        text, memory = trace.question.text, trace.remembered
        if self.only_follow_ups and not trace.question.history:
            return []
        values = {"question": text, "history": memory.turns, "summary": memory.summary, "classes": QUERY_CLASSES}
        messages = self.prompt.messages(values) if self.prompt else prompts.understanding_messages(text, memory)
        seed = self.seed + trace.repeat
        return [ChatRequest(messages, max_tokens=128, seed=seed, json_schema=prompts.UNDERSTANDING_SCHEMA)]

    def read(self, trace: Trace, requests: Sequence[ChatRequest], replies: Sequence[ChatReply]) -> Outcome:
        """Return the understanding, or a fallback."""
        if not replies:
            return Outcome(reason=NOT_ASKED, seconds=0.0)
        (reply,) = replies
        found = _object(reply, Understanding)
        if isinstance(found, str):
            return chat_outcome(reply, {}, "fallback", f"no understanding: {found}")
        rewrite = found.rewritten.strip()
        updates = {"query_class": found.query_class, "proposed_query": rewrite, "hyde_suggested": found.hyde}
        return chat_outcome(reply, updates)


def _object(reply: ChatReply, kind: type[Model]) -> Model | str:
    """Return the object in a reply, or why there is none."""
    if reply.error:
        return reply.error
    try:
        return read_as(reply.text, kind)
    except RepairError:
        return f"the reply was not the object: {reply.text!r}" if reply.text else nothing_written(reply)


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

    def accept(self, trace: Trace, returned: Any) -> Outcome:
        """Set what was returned."""
        try:
            found = _Returned.model_validate(returned)
        except ValidationError as error:
            detail = error.errors()[0]
            wrong = f"{key_of(detail)} {complaint_and_value(detail)}".strip()
            raise CustomCodeError(f'the understanding is no {{"class", "rewrite", "hyde"}}: {wrong}') from None
        proposed = (found.rewrite or "").strip() or None
        return Outcome({"query_class": found.query_class, "proposed_query": proposed, "hyde_suggested": found.hyde})


class Phrasings(BaseModel):
    """The object that the model returns."""

    phrasings: list[str]


@dataclass(frozen=True)
class Rephrase(ChatStage):
    """Ask for `n` other phrasings of what is searched, so that one wording does not decide what is found.

    Without any, only the search query is searched.
    """

    n: int
    seed: int = 0
    prompt: ChatTemplate | None = None  # in place of the one that is built in

    PROMPTS = prompts.VERSION
    name = REPHRASE
    reads = ("search_query",)
    writes = ("phrasings",)

    def requests_for(self, trace: Trace) -> list[ChatRequest]:
        """Return the request for one trace."""
        query = trace.search_query or trace.question.text
        values = {"question": query, "n": self.n}
        return [
            ChatRequest(
                self.prompt.messages(values) if self.prompt else prompts.phrasing_messages(query, self.n),
                max_tokens=_TOKENS_PER_PHRASING * self.n,
                seed=self.seed + trace.repeat,
                json_schema=prompts.phrasing_schema(self.n),
            )
        ]

    def read(self, trace: Trace, requests: Sequence[ChatRequest], replies: Sequence[ChatReply]) -> Outcome:
        """Return those phrasings that are not blank, the query, or each other, or a fallback."""
        (reply,) = replies
        found = _object(reply, Phrasings)
        if isinstance(found, str):
            return chat_outcome(reply, {}, "fallback", f"no other phrasings: {found}")
        texts = [" ".join(text.split()) for text in (trace.search_query or trace.question.text, *found.phrasings)]
        distinct = {text.casefold(): text for text in reversed(texts)}
        others = [text for key, text in reversed(distinct.items()) if key and key != texts[0].casefold()]
        if not others[: self.n]:
            return chat_outcome(reply, {}, "fallback", "no other phrasings: the model repeated the question")
        return chat_outcome(reply, {"phrasings": tuple(others[: self.n])})
