"""What a chat model makes of a question: its class, a self-contained rewrite and a HyDE suggestion; other phrasings."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_lab._kit.config_file import complaint_and_value, key_of
from rag_lab._kit.custom_code import CustomCodeError
from rag_lab.models.json_repair import Model, RepairError, read_as
from rag_lab.models.protocols import ChatReply, ChatRequest, Message
from rag_lab.records import QUERY_CLASSES, QueryClass, Remembered, Trace
from rag_lab.stages import stage as base
from rag_lab.stages.chat_template import ChatTemplate
from rag_lab.stages.stage import ChatStage, CustomStage, Exchange, Off, Outcome, Parts, Stage, chat_outcome, stage_of
from rag_lab.stages.steps import FOLLOW_UPS, UNDERSTANDINGS

UNDERSTAND = "understand"
REPHRASE = "rephrase"
NOT_ASKED = "no conversation before the question"
_TOKENS_PER_PHRASING = 48

PROMPT_VERSION = 1  # of the wording below: results are remembered by it

UNDERSTANDING = """\
You prepare questions for a search in technical documents. Classes: specific (one fact, value or name), fuzzy (vague \
or colloquial), comparative (two things set against each other), procedural (how to do something), creative (write, \
draft, suggest). Reply with class, rewritten (a complete, self-contained search query that keeps every name, number \
and code) and hyde (whether an imagined passage would help the search)."""

# Question, class, rewrite, hyde. Small models classify by example far better than by definition, and prefer whichever
# class came first or last; so each class stands twice, mixed.
EXAMPLES: tuple[tuple[str, QueryClass, str, bool], ...] = (
    ("How do I change the belt on conveyor C4?", "procedural", "steps to change the belt on conveyor C4", True),
    ("Who approves a deviation?", "specific", "who approves a deviation", False),
    ("that smell near the tank, is it bad?", "fuzzy", "hazard of odour near the tank", True),
    ("Which lasts longer, pump A or pump B?", "comparative", "service life of pump A compared with pump B", False),
    ("Write a short safety talk about forklifts.", "creative", "forklift safety rules and hazards", True),
    ("the saw keeps making that weird noise", "fuzzy", "causes of unusual noise of the saw", True),
    ("What is the torque for the bolts on gearbox G-12?", "specific", "torque for the bolts on gearbox G-12", False),
    ("Suggest ideas to reduce waste in packing.", "creative", "ways to reduce waste in packing", True),
    ("What are the steps to calibrate scale S1?", "procedural", "steps to calibrate scale S1", True),
    (
        "Is the old gasket thicker than the new one?",
        "comparative",
        "thickness of the old gasket compared with the new gasket",
        False,
    ),
)

# What was said before, question, class, rewrite, hyde: shown where something was said, since a small model otherwise
# repeats the question as it is. The last changes the subject.
FOLLOW_UP_EXAMPLES: tuple[tuple[str, str, QueryClass, str, bool], ...] = (
    (
        "Conversation so far:\nuser: How often does pump B get new oil?\nassistant: Every 500 hours.\n",
        "And its bearing?",
        "specific",
        "bearing of pump B",
        False,
    ),
    (
        "Conversation so far:\nuser: How thick is the gasket of pump A?\nassistant: 2 mm.\n",
        "Is that of pump B thicker?",
        "comparative",
        "thickness of the gasket of pump B compared with the gasket of pump A",
        False,
    ),
    (
        "Conversation so far:\nuser: Which belt has conveyor C4?\nassistant: Belt CB-40.\n",
        "Something else: who orders tyres?",
        "specific",
        "who orders tyres",
        False,
    ),
)

_PHRASING = """\
You reword questions for a search in technical documents. Each phrasing asks for the same thing in other words: \
synonyms, technical terms, another sentence. Keep every name, number and code. Reply with phrasings."""
_PHRASING_EXAMPLES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "How often is the oil of pump A changed?",
        ("oil change interval of pump A", "When does pump A need new oil?", "lubrication schedule pump A"),
    ),
    (
        "Who approves a deviation?",
        (
            "responsible for the approval of deviations",
            "Which role releases a deviation?",
            "deviation release authority",
        ),
    ),
)
UNDERSTANDING_SCHEMA = {
    "type": "object",
    "properties": {
        "class": {"type": "string", "enum": list(QUERY_CLASSES)},
        "rewritten": {"type": "string", "maxLength": 200},
        "hyde": {"type": "boolean"},
    },
    "required": ["class", "rewritten", "hyde"],
    "additionalProperties": False,
}


def understand_stages(parts: Parts) -> tuple[Stage, Stage]:
    """Return what understands the question, and what writes other phrasings of it."""
    query = parts.query
    understand: Stage = Off(UNDERSTAND)
    rephrase: Stage = Off(REPHRASE)
    only_follow_ups = query.rewrite == FOLLOW_UPS and query.hyde not in ("classified", "suggested")
    if query.understands or UNDERSTAND in parts.overrides:
        prompt, writes = parts.prompts.get("understanding"), LlmUnderstanding.writes
        llm = {
            "llm": lambda: LlmUnderstanding(
                parts.chat("understanding", UNDERSTAND), parts.seed, prompt, only_follow_ups
            )
        }
        custom = partial(CustomStage, "CustomUnderstanding", UNDERSTAND, ("question.text",), writes, _understood, {})
        understand = stage_of(UNDERSTANDINGS, UNDERSTAND, query.understanding, parts, llm, custom)
    if query.phrasings:
        chat, prompt = parts.chat("understanding", REPHRASE), parts.prompts.get("phrasings")
        rephrase = Rephrase(chat, query.phrasings, parts.seed, prompt)
    return understand, rephrase


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
        return [ChatRequest(messages, max_tokens=128, seed=seed, json_schema=UNDERSTANDING_SCHEMA)]

    def read(self, trace: Trace, requests: Sequence[ChatRequest], replies: Sequence[ChatReply]) -> Outcome:
        """Return the understanding, or a fallback."""
        if not replies:
            return Outcome(reason=NOT_ASKED, seconds=0.0)
        (reply,) = replies
        found = read_object(reply, Understanding)
        if isinstance(found, str):
            return chat_outcome(reply, {}, "fallback", f"no understanding: {found}")
        rewrite = found.rewritten.strip()
        updates = {"query_class": found.query_class, "proposed_query": rewrite, "hyde_suggested": found.hyde}
        return chat_outcome(reply, updates)


def read_object(reply: ChatReply, kind: type[Model]) -> Model | str:
    """Return the object in a reply, or why there is none."""
    if reply.error:
        return reply.error
    try:
        return read_as(reply.text, kind)
    except RepairError:
        return f"the reply was not the object: {reply.text!r}" if reply.text else base.nothing_written(reply)


class _Returned(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    query_class: QueryClass | None = Field(None, alias="class")
    rewrite: str | None = None
    hyde: bool | None = None


def _understood(trace: Trace) -> Exchange:
    """`(question) -> {"class", "rewrite", "hyde"}`, of which any may be left out, and then stays open."""
    returned = yield (trace.question.text,)
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
        return [ChatRequest(messages, max_tokens=max_tokens, seed=seed, json_schema=phrasing_schema(self.n))]

    def read(self, trace: Trace, requests: Sequence[ChatRequest], replies: Sequence[ChatReply]) -> Outcome:
        """Return those phrasings that are not blank, the query, or each other, or a fallback."""
        (reply,) = replies
        found = read_object(reply, Phrasings)
        if isinstance(found, str):
            return chat_outcome(reply, {}, "fallback", f"no other phrasings: {found}")
        texts = [" ".join(text.split()) for text in (trace.search_query or trace.question.text, *found.phrasings)]
        distinct = {text.casefold(): text for text in reversed(texts)}
        others = [text for key, text in reversed(distinct.items()) if key and key != texts[0].casefold()]
        if not others[: self.n]:
            return chat_outcome(reply, {}, "fallback", "no other phrasings: the model repeated the question")
        return chat_outcome(reply, {"phrasings": tuple(others[: self.n])})


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
    return {
        "type": "object",
        "properties": {"phrasings": phrasings},
        "required": ["phrasings"],
        "additionalProperties": False,
    }
