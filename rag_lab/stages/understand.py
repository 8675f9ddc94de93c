"""What a chat model makes of a question: its class, a self-contained rewrite and a HyDE suggestion; other phrasings."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from rag_lab._kit.custom_code import CustomCodeError
from rag_lab._kit.section import complaint_and_value, key_of
from rag_lab.models.protocols import ChatReply, ChatRequest, Message
from rag_lab.records import QUERY_CLASSES, QueryClass, Remembered, Trace
from rag_lab.stages import stage as base
from rag_lab.stages.chat_template import SHIPPED_PROMPTS, ChatTemplate, RepairError, read_json
from rag_lab.stages.steps import FOLLOW_UPS, UNDERSTANDINGS

Model = TypeVar("Model", bound=BaseModel)
UNDERSTAND = "understand"
REPHRASE = "rephrase"
NOT_ASKED = "no conversation before the question"
_PHRASINGS = create_model("Phrasings", phrasings=list[str])  # the object that the model returns
_TOKENS_PER_PHRASING = 48

PROMPT_VERSION = 1  # of the wording below: results are remembered by it

UNDERSTANDING = SHIPPED_PROMPTS["understanding"]["system"]

# Question, class, rewrite, hyde. Small models classify by example far better than by definition, and prefer whichever
# class came first or last; so each class stands twice, mixed.
EXAMPLES: tuple[tuple[str, QueryClass, str, bool], ...] = SHIPPED_PROMPTS["understanding"]["examples"]

# What was said before, question, class, rewrite, hyde: shown where something was said, since a small model otherwise
# repeats the question as it is. The last changes the subject.
_FOLLOW_UPS = SHIPPED_PROMPTS["understanding"]["follow_up_examples"]
FOLLOW_UP_EXAMPLES: tuple[tuple[str, str, QueryClass, str, bool], ...] = _FOLLOW_UPS

_PHRASING = SHIPPED_PROMPTS["phrasings"]["system"]
_PHRASING_EXAMPLES: tuple[tuple[str, tuple[str, ...]], ...] = SHIPPED_PROMPTS["phrasings"]["examples"]
UNDERSTANDING_SCHEMA = base.object_schema(
    **{"class": {"type": "string", "enum": list(QUERY_CLASSES)}},
    rewritten={"type": "string", "maxLength": 200},
    hyde={"type": "boolean"},
)


def understand_stages(parts: base.Parts) -> tuple[base.Stage, base.Stage]:
    """Return what understands the question, and what writes other phrasings of it."""
    query = parts.query
    understand: base.Stage = base.Off(UNDERSTAND)
    rephrase: base.Stage = base.Off(REPHRASE)
    only_follow_ups = query.rewrite == FOLLOW_UPS and query.hyde not in ("classified", "suggested")
    if query.understands or UNDERSTAND in parts.overrides:
        prompt, writes = parts.prompts.get("understanding"), LlmUnderstanding.writes
        llm = {
            "llm": lambda: LlmUnderstanding(
                parts.chat("understanding", UNDERSTAND), parts.seed, prompt, only_follow_ups, query.temperature
            )
        }
        custom = partial(
            base.CustomStage, "CustomUnderstanding", UNDERSTAND, ("question.text",), writes, _understood, {}
        )
        understand = base.stage_of(UNDERSTANDINGS, UNDERSTAND, query.understanding, parts, llm, custom)
    if query.phrasings:
        chat, prompt = parts.chat("understanding", REPHRASE), parts.prompts.get("phrasings")
        rephrase = Rephrase(chat, query.phrasings, parts.seed, prompt, query.temperature)
    return understand, rephrase


class Understanding(BaseModel):
    """The object that the model returns."""

    model_config = ConfigDict(populate_by_name=True)

    query_class: QueryClass = Field(alias="class")
    rewritten: str = Field(min_length=1)
    hyde: bool


@dataclass(frozen=True)
class LlmUnderstanding(base.ChatStage):
    """Ask for class, rewrite and HyDE suggestion, of follow-ups alone where asked so; an unread reply is a fallback."""

    seed: int = 0
    prompt: ChatTemplate | None = None  # in place of the one that is built in
    only_follow_ups: bool = False
    temperature: float = 0.0

    PROMPTS = PROMPT_VERSION
    name = UNDERSTAND
    reads = ("question.text", "question.history", "remembered")
    writes = ("query_class", "proposed_query", "hyde_suggested")

    def requests_for(self, trace: Trace) -> list[ChatRequest]:
        """Return the request for one trace, if the model is asked about it."""
        text, memory = trace.question.text, trace.remembered
        if self.only_follow_ups and not trace.question.history:
            return []
        values = {"question": text, "history": memory.turns, "summary": memory.summary, "classes": QUERY_CLASSES}
        messages = self.prompt.messages(values) if self.prompt else understanding_messages(text, memory)
        seed = self.seed + trace.repeat
        return [ChatRequest(messages, 128, self.temperature, seed, json_schema=UNDERSTANDING_SCHEMA)]

    def read(self, trace: Trace, requests: Sequence[ChatRequest], replies: Sequence[ChatReply]) -> base.Outcome:
        """Return the understanding, or a fallback."""
        if not replies:
            return base.Outcome(reason=NOT_ASKED, seconds=0.0)
        (reply,) = replies
        found = read_object(reply, Understanding)
        if isinstance(found, str):
            return base.chat_outcome(reply, {}, "fallback", f"no understanding: {found}")
        rewrite = found.rewritten.strip()
        updates = {"query_class": found.query_class, "proposed_query": rewrite, "hyde_suggested": found.hyde}
        return base.chat_outcome(reply, updates)


def read_object(reply: ChatReply, kind: type[Model]) -> Model | str:
    """Return the object in a reply, or why there is none."""
    if reply.error:
        return reply.error
    try:
        return kind.model_validate(read_json(reply.text)[0])
    except (RepairError, ValidationError):
        return f"the reply was not the object: {reply.text!r}" if reply.text else base.nothing_written(reply)


class _Returned(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    query_class: QueryClass | None = Field(None, alias="class")
    rewrite: str | None = None
    hyde: bool | None = None


def _understood(trace: Trace) -> base.Exchange:
    """`(question) -> {"class", "rewrite", "hyde"}`, of which any may be left out, and then stays open."""
    returned = yield (trace.question.text,)
    try:
        found = _Returned.model_validate(returned)
    except ValidationError as error:
        detail = error.errors()[0]
        wrong = f"{key_of(detail)} {complaint_and_value(detail)}".strip()
        raise CustomCodeError(f'the understanding is no {{"class", "rewrite", "hyde"}}: {wrong}') from None
    proposed = (found.rewrite or "").strip() or None
    return base.Outcome({"query_class": found.query_class, "proposed_query": proposed, "hyde_suggested": found.hyde})


@dataclass(frozen=True)
class Rephrase(base.ChatStage):
    """Ask for `n` other phrasings of what is searched, so that one wording does not decide what is found."""

    n: int
    seed: int = 0
    prompt: ChatTemplate | None = None  # in place of the one that is built in
    temperature: float = 0.0

    PROMPTS = PROMPT_VERSION
    name = REPHRASE
    reads = ("search_query",)
    writes = ("phrasings",)

    def requests_for(self, trace: Trace) -> list[ChatRequest]:
        """Return the request for one trace."""
        query = trace.search_query or trace.question.text
        if self.prompt:
            messages = self.prompt.messages({"question": query, "n": self.n})
        else:  # the examples show up to three
            examples = [(asked, others[: self.n]) for asked, others in _PHRASING_EXAMPLES]
            shots = (
                (f"Question: {asked}\nPhrasings: {len(others)}", json.dumps({"phrasings": others}))
                for asked, others in examples
            )
            messages = base.few_shot(_PHRASING, shots, f"Question: {query}\nPhrasings: {self.n}")
        max_tokens, seed = _TOKENS_PER_PHRASING * self.n, self.seed + trace.repeat
        return [ChatRequest(messages, max_tokens, self.temperature, seed, json_schema=phrasing_schema(self.n))]

    def read(self, trace: Trace, requests: Sequence[ChatRequest], replies: Sequence[ChatReply]) -> base.Outcome:
        """Return those phrasings that are not blank, the query, or each other, or a fallback."""
        (reply,) = replies
        found: Any = read_object(reply, _PHRASINGS)
        if isinstance(found, str):
            return base.chat_outcome(reply, {}, "fallback", f"no other phrasings: {found}")
        texts = [" ".join(text.split()) for text in (trace.search_query or trace.question.text, *found.phrasings)]
        distinct = {text.casefold(): text for text in reversed(texts)}
        others = [text for key, text in reversed(distinct.items()) if key and key != texts[0].casefold()]
        if not others[: self.n]:
            return base.chat_outcome(reply, {}, "fallback", "no other phrasings: the model repeated the question")
        return base.chat_outcome(reply, {"phrasings": tuple(others[: self.n])})


def understanding_messages(question: str, remembered: Remembered) -> tuple[Message, ...]:
    """Return the chat that asks for class, rewrite and HyDE suggestion; what was said stands before the question."""
    lines = [f"summary: {remembered.summary}\n"] if remembered.summary else []
    lines += [f"{turn.role}: {turn.content}\n" for turn in remembered.turns]
    examples = [("", *example) for example in EXAMPLES] + (list(FOLLOW_UP_EXAMPLES) if lines else [])
    shots = (
        (f"{before}Question: {asked}", json.dumps({"class": query_class, "rewritten": rewritten, "hyde": hyde}))
        for before, asked, query_class, rewritten, hyde in examples
    )
    so_far = f"Conversation so far:\n{''.join(lines)}" if lines else ""
    return base.few_shot(UNDERSTANDING, shots, f"{so_far}Question: {question}")


def phrasing_schema(n: int) -> dict[str, Any]:
    """Return the schema of an object with `n` phrasings."""
    phrasings = {"type": "array", "items": {"type": "string", "maxLength": 160}, "minItems": n, "maxItems": n}
    return base.object_schema(phrasings=phrasings)
