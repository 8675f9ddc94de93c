"""Generation: ask the model for an answer with citations, as JSON, or for the answer alone, as text; and parsing.

The raw reply becomes an answer, citations and thinking, or a failure that keeps the raw text.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import BaseModel, ValidationError

from rag_lab._kit.custom_code import CustomCodeError
from rag_lab.models.protocols import LISTENER, ChatReply, ChatRequest, Message, split_thinking
from rag_lab.records import Answer, Citation, Passage, Remembered, Trace
from rag_lab.stages import stage as base
from rag_lab.stages.chat_template import SHIPPED_PROMPTS, ChatTemplate, RepairError, read_json
from rag_lab.stages.context import render_passages
from rag_lab.stages.extract import NOT_FOUND, extract_stage
from rag_lab.stages.steps import READERS

_MORE_ROOM = "the reply was cut off while thinking: raise answer.thinking_tokens"
_NO_ROOM = "the reply was cut off while thinking: set answer.thinking, which gives answer.thinking_tokens of room to it"
_NO_REPLY = "the model thought and ended without a reply"
_NO_THOUGHT = "the model was asked to think and did not"
_NUMBER = re.compile(r"\d+")
_ANSWER_SO_FAR = re.compile(r'(?:```\w*\s*)?\{\s*"answer"\s*:\s*"((?:[^"\\]|\\(?:u[0-9a-fA-F]{4}|[^u]))*)')
_LEAST_LETTERS = 6
_SAID_AGAIN = r"(?P<said>\S.{7,199}?)(?:\s*(?P=said)){2,}"
# A round begins with a sentence, else with a word.
_ROUNDS = [re.compile(begin + _SAID_AGAIN, re.DOTALL) for begin in (r"(?:^|(?<=[.!?]\s)|(?<=[。！？\n]))", r"(?<!\S)")]
_MOST_CHARS = 20_000  # a longer reply is left as it is: looking for rounds takes time


PROMPT_VERSION = 2  # of the wording below: results are remembered by it

SYSTEM = SHIPPED_PROMPTS["answer"]["system"]

SYSTEM_TEXT = SHIPPED_PROMPTS["answer"]["system_text"]

# Passages, question, answer, citations: a small model learns the form, and where to stop, from examples alone.
EXAMPLES: tuple[tuple[str, str, str, list[int]], ...] = SHIPPED_PROMPTS["answer"]["examples"]

SCHEMA = base.object_schema(
    answer={"type": "string"}, citations={"type": "array", "items": {"type": "integer"}, "maxItems": 5}
)
# A closed book: what the model answers out of what it knows, where `answer.context` is `none`. The usual prompt would
# forbid that, as it asks for what stands in the passages only.
_CLOSED_BOOK = f"""\
You answer questions briefly, out of what you know. Reply with a JSON object that holds the answer and an empty list \
of citations. If you cannot answer, reply {{"answer": "{NOT_FOUND}", "citations": []}}"""
# Another subject than any documents of a user, so that nothing of them is given away.
_CLOSED_BOOK_EXAMPLES: tuple[tuple[str, str, list[int]], ...] = (
    ("Question: How many days has a leap year?", "A leap year has 366 days.", []),
    ("Question: Which is the largest ocean?", "The Pacific is the largest ocean.", []),
)
_ASKED = "Passages:\n\n{}\n\nQuestion: {}"


def answer_stages(parts: base.Parts) -> tuple[base.Stage, ...]:
    """Return what answers from the context; nothing where answers are switched off."""
    answer = parts.answer
    if not answer.is_on and "reader" not in parts.overrides:
        return ()

    def by_llm(as_text: bool = False) -> base.Stage:
        """A closed book is asked for JSON in either case, and by no custom prompt: those ask for what passages say."""
        is_closed = answer.context == "none" and "context" not in parts.overrides
        is_sampled = answer.thinking or answer.temperature
        top_p, top_k, min_p = (answer.top_p, answer.top_k, answer.min_p) if is_sampled else (None, None, None)
        return Generate(
            parts.chat("generation", Generate.name),
            answer.max_tokens,
            answer.temperature,
            answer.thinking_tokens if answer.thinking else 0,
            parts.seed,
            top_p,
            top_k,
            min_p,
            closed_book=is_closed,
            prompt=None if is_closed else parts.prompts.get("answer"),
            as_text=as_text and not is_closed,
        )

    built_in: dict[str, Callable[[], base.Stage]] = {
        "none": lambda: base.Off(Generate.name),
        "llm": by_llm,
        "text": lambda: by_llm(as_text=True),
        "extract": lambda: extract_stage(parts),
    }
    reads = ("question.text", "passages")
    custom = partial(base.CustomStage, "CustomReader", Generate.name, reads, ("answer",), _read, {})
    stage = base.stage_of(READERS, "reader", answer.name, parts, built_in, custom)
    as_text = isinstance(stage, Generate) and stage.as_text
    return (stage,) if "answer" in stage.writes else (stage, Parse(as_text))


def answer_messages(
    question: str, remembered: Remembered, passages: Sequence[Passage] | None, as_text: bool = False
) -> tuple[Message, ...]:
    """Return the chat that asks for an answer, after examples and earlier turns; without `passages` a closed book's."""
    if passages is None:
        system, asked = _CLOSED_BOOK, f"Question: {question}"
        examples = _CLOSED_BOOK_EXAMPLES
    else:
        system, asked = SYSTEM_TEXT if as_text else SYSTEM, _ASKED.format(render_passages(passages), question)
        examples = tuple((_ASKED.format(context, text), answer, cited) for context, text, answer, cited in EXAMPLES)
    shots = (
        (text, answer if as_text else json.dumps({"answer": answer, "citations": citations}))
        for text, answer, citations in examples
    )
    return base.few_shot(system, shots, asked, earlier_messages(remembered))


def earlier_messages(remembered: Remembered) -> tuple[Message, ...]:
    """Return what is remembered of the conversation: its summary, then the turns since as they were said."""
    summary = (Message("user", f"What we talked about so far: {remembered.summary}"), Message("assistant", "I see."))
    turns = tuple(Message(turn.role, turn.content) for turn in remembered.turns)
    return (*summary, *turns) if remembered.summary else turns


@dataclass(frozen=True)
class Generate(base.ChatStage):
    """Answer each question from its context, in the user's wording; sampling of None is the card's."""

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
    PROMPTS = PROMPT_VERSION
    name = "generate"
    reads = ("question.text", "question.history", "remembered", "passages")
    writes = ("prompt", "raw_text")
    batch_size = 4

    def requests_for(self, trace: Trace) -> list[ChatRequest]:
        """Return the request for one trace."""
        question, remembered = trace.question, trace.remembered
        if self.closed_book:
            messages = answer_messages(question.text, remembered, None)
        elif self.prompt is None:
            messages = answer_messages(question.text, remembered, trace.passages, self.as_text)
        else:
            values = {
                "question": question.text,
                "history": remembered.turns,
                "summary": remembered.summary,
                "passages": trace.passages,
                "context": render_passages(trace.passages),
                "not_found": NOT_FOUND,
            }
            messages = self.prompt.messages(values)
        return [
            ChatRequest(
                messages,
                max_tokens=self.max_tokens,
                temperature=self.temperature,
                seed=self.seed + trace.repeat,
                json_schema=None if self.as_text else SCHEMA,  # of the reply, whatever the model thinks before
                thinking_tokens=self.thinking_tokens,
                top_p=self.top_p,
                top_k=self.top_k,
                min_p=self.min_p,
            )
        ]

    def read(self, trace: Trace, requests: Sequence[ChatRequest], replies: Sequence[ChatReply]) -> base.Outcome:
        """Return the raw reply, or why there is none."""
        (request,), (reply,) = requests, replies
        prompt = base.written(request.messages)
        if reply.error:
            return base.chat_outcome(reply, {"prompt": prompt}, "failed", reply.error)
        raw = f"<think>{reply.thinking}</think>{reply.text}" if reply.thinking else reply.text
        updates = {"prompt": prompt, "raw_text": raw}
        # The tokens may run out before the answer begins; some models' thinking has no opening mark.
        unmarked = request.thinking and not reply.thinking and "{" not in reply.text
        if reply.truncated and (not reply.text or unmarked):
            return base.chat_outcome(reply, updates, "failed", _MORE_ROOM if request.thinking else _NO_ROOM)
        if reply.thinking and not reply.text:
            return base.chat_outcome(reply, updates, "failed", _NO_REPLY)
        if request.thinking and not reply.has_thought:
            return base.chat_outcome(reply, updates, "fallback", _NO_THOUGHT)
        return base.chat_outcome(reply, updates)


@dataclass
class Spoken:
    """Hands an answer on in pieces of whole words, so that none ends within a secret; no thoughts, and no circles."""

    on_text: Callable[[str], object] | None
    as_text: bool = False
    text: str = ""

    @contextmanager
    def during(self, stage: base.Stage) -> Iterator[None]:
        """Listen to the model while `stage` runs, where that asks for an answer."""
        hears = self.on_text is not None and isinstance(stage, Generate)
        self.as_text = isinstance(stage, Generate) and stage.as_text
        token = LISTENER.set(self.hear if hears else None)
        try:
            yield
        finally:
            LISTENER.reset(token)

    def hear(self, raw: str) -> None:
        """Hand on what is new in the reply so far."""
        text = split_thinking(raw)[0]
        if not self.as_text:
            found = _ANSWER_SO_FAR.match(text)
            text = json.loads(f'"{found[1]}"', strict=False) if found else ""
        text = without_loop(text.lstrip())[0]
        self.end(text[: max(text.rfind(" "), 0)], whole=False)

    def end(self, text: str, whole: bool = True) -> None:
        """Hand on what is missing of `text`; where the whole is another, a new line and all of it."""
        if self.on_text and text != self.text and (text.startswith(self.text) or whole):
            is_more, before = text.startswith(self.text), len(self.text)
            self.text = text
            self.on_text(text[before:] if is_more else f"\n{text}")


def _read(trace: Trace) -> base.Exchange:
    """`(question, passages) -> str or Answer`, citing passages by number, from 1; wrong ones are kept as rejected."""
    returned = yield trace.question.text, [passage.text for passage in trace.passages]
    answer = Answer(returned) if isinstance(returned, str) else returned
    if not isinstance(answer, Answer) or not isinstance(answer.text, str):
        raise CustomCodeError(f"the reader returned {type(returned).__name__} where text or an Answer is due")
    text = answer.text.strip()
    if not text:
        raise CustomCodeError("the answer of the reader is empty")
    cited = [  # as the parser reads them
        ({"passage": one.number, "quote": one.quote} if one.quote else one.number) if isinstance(one, Citation) else one
        for one in answer.citations
    ]
    accepted, rejected = checked_citations(cited, trace.passages)
    abstained = answer.abstained or is_abstention(text)
    refused = (*answer.rejected_citations, *rejected)
    return base.Outcome({"answer": Answer(text, accepted, refused, answer.thinking, abstained)})


class Reply(BaseModel):
    """The object that the prompt asks for. Models write citations as numbers, strings or objects."""

    answer: str
    citations: list[Any] = []


@dataclass(frozen=True)
class Parse(base.BuiltInStage):
    """Read each raw reply, or take all `as_text`; a repair is a fallback, what no rule reads has failed."""

    as_text: bool = False

    VERSION = 3
    name = "parse"
    reads = ("raw_text", "passages")
    writes = ("answer",)

    def outcome(self, trace: Trace) -> base.Outcome:
        """Parse the reply of one trace."""
        try:
            answer, rule = parse_reply(trace.raw_text or "", trace.passages, as_text=self.as_text)
        except RepairError as error:
            return base.Outcome(status="failed", reason=str(error))
        return base.Outcome({"answer": answer}, "fallback" if rule else "ok", f"repaired: {rule}" if rule else "")


def parse_reply(raw: str, passages: Sequence[Passage], *, as_text: bool = False) -> tuple[Answer, str]:
    """Return the answer in `raw` and the repair rule that was needed ('' for none); a `RepairError` if there is none.

    An answer that goes round in a circle is cut, by such a rule. A citation counts only if it names a passage of the
    context; others are kept as rejected. `as_text` takes all of it but its thinking as the answer, which cites nothing.
    """
    text, thinking = split_thinking(raw)
    if as_text:
        reply, rule = Reply(answer=text), ""
    else:
        value, rule = read_json(text)
        try:
            reply = Reply.model_validate(value)
        except ValidationError:
            raise RepairError("the object in the reply has no text under 'answer'") from None
    answer, rounds = without_loop(reply.answer.strip())
    if rounds:
        rule = "; ".join(filter(None, [rule, f"said the same {rounds} times, which is kept once"]))
    if not answer:
        raise RepairError("the answer in the reply is empty")
    citations, rejected = checked_citations(reply.citations, passages)
    return Answer(answer, citations, rejected, thinking, abstained=is_abstention(answer)), rule


def checked_citations(
    given: Sequence[Any], passages: Sequence[Passage]
) -> tuple[tuple[Citation, ...], tuple[str, ...]]:
    """Return the citations that name one of `passages`, each once, and the others as they were written."""
    by_number = {passage.number: passage for passage in passages}
    accepted: dict[int, Citation] = {}
    rejected: dict[str, None] = {}
    for item in given:  # 2, "2", "[2]" or {"passage": 2}
        named = item.get("passage", item.get("number", "")) if isinstance(item, dict) else item
        found = _NUMBER.findall(str(named))
        passage = by_number.get(int(found[0])) if len(found) == 1 and len(found[0]) < 10 else None
        quote = str(item.get("quote", "")) if isinstance(item, dict) else ""
        if passage is None:
            rejected[str(item)] = None
        else:
            accepted.setdefault(passage.number, Citation(passage.number, passage.source, passage.page, quote))
    return tuple(accepted.values()), tuple(rejected)


def is_abstention(answer: str) -> bool:
    """Tell whether an answer says that the documents do not hold one."""
    return NOT_FOUND.rstrip(".").lower() in answer.lower()


def without_loop(text: str) -> tuple[str, int]:
    """Return a text that ends in a circle of three rounds or more with one, and their number; 0 without one.

    A beginning of another round goes. What is said has letters: rows of dashes and zeros are no circle.
    """
    if len(text) > _MOST_CHARS:
        return text, 0
    for found in (found for rounds in _ROUNDS for found in rounds.finditer(text)):
        said, rest = found["said"], text[found.end() :].strip()
        if sum(char.isalpha() for char in said) >= _LEAST_LETTERS and said.startswith(rest):
            return text[: found.start()] + said, found[0].count(said)
    return text, 0
