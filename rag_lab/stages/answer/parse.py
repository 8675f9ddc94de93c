"""Parsing: the raw reply becomes an answer, citations and thinking, or a failure that keeps the raw text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from rag_lab.models.json_repair import RepairError, read_json
from rag_lab.models.protocols import split_thinking
from rag_lab.records import Answer, Citation, Passage, Trace
from rag_lab.stages.answer.prompts import NOT_FOUND
from rag_lab.stages.stage import BuiltInStage, Outcome

_NUMBER = re.compile(r"\d+")

_LEAST_LETTERS = 6
_SAID_AGAIN = r"(?P<said>\S.{7,199}?)(?:\s*(?P=said)){2,}"
# A round begins with a sentence, else with a word.
_ROUNDS = [re.compile(begin + _SAID_AGAIN, re.DOTALL) for begin in (r"(?:^|(?<=[.!?]\s)|(?<=[。！？\n]))", r"(?<!\S)")]
_MOST_CHARS = 20_000  # a longer reply is left as it is: looking for rounds takes time


class Reply(BaseModel):
    """The object that the prompt asks for. Models write citations as numbers, strings or objects."""

    answer: str
    citations: list[Any] = []


@dataclass(frozen=True)
class Parse(BuiltInStage):
    """Read each raw reply; a repair is a fallback with the rule's name, what no rule reads has failed.

    `as_text` takes the whole reply as the answer, which then cites nothing.
    """

    as_text: bool = False

    VERSION = 3
    name = "parse"
    reads = ("raw_text", "passages")
    writes = ("answer",)

    def outcome(self, trace: Trace) -> Outcome:
        """Parse the reply of one trace."""
        try:
            answer, rule = parse_reply(trace.raw_text or "", trace.passages, as_text=self.as_text)
        except RepairError as error:
            return Outcome(status="failed", reason=str(error))
        return Outcome({"answer": answer}, "fallback" if rule else "ok", f"repaired: {rule}" if rule else "")


def parse_reply(raw: str, passages: Sequence[Passage], *, as_text: bool = False) -> tuple[Answer, str]:
    """Return the answer in `raw` and the repair rule that was needed ('' for none).

    An answer that goes round in a circle is cut, by such a rule. A citation counts only if it names a passage of the
    context; others are kept as rejected. `as_text` takes all of it but its thinking as the answer, which cites nothing.

    Raises:
        RepairError: if no object with an answer can be read.
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
    for item in given:
        passage = by_number.get(_number(item))
        quote = str(item.get("quote", "")) if isinstance(item, dict) else ""
        if passage is None:
            rejected[str(item)] = None
        else:
            accepted.setdefault(passage.number, Citation(passage.number, passage.source, passage.page, quote))
    return tuple(accepted.values()), tuple(rejected)


def _number(item: Any) -> int:
    """Return the passage number in 2, "2", "[2]" or {"passage": 2}; -1 where there is none."""
    if isinstance(item, dict):
        item = item.get("passage", item.get("number", ""))
    found = _NUMBER.findall(str(item))
    return int(found[0]) if len(found) == 1 and len(found[0]) < 10 else -1


def is_abstention(answer: str) -> bool:
    """Tell whether an answer says that the documents do not hold one."""
    return NOT_FOUND.rstrip(".").lower() in answer.lower()


def without_loop(text: str) -> tuple[str, int]:
    """Return a text that ends in a circle with each round once, and how many rounds there were; 0 where it does not.

    What follows the last round is left out where it is the beginning of another, cut off. Three rounds are a circle,
    and what is said in each has letters: rows of dashes and zeros are none.
    """
    if len(text) > _MOST_CHARS:
        return text, 0
    for found in (found for rounds in _ROUNDS for found in rounds.finditer(text)):
        said, rest = found["said"], text[found.end() :].strip()
        if sum(char.isalpha() for char in said) >= _LEAST_LETTERS and said.startswith(rest):
            return text[: found.start()] + said, found[0].count(said)
    return text, 0
