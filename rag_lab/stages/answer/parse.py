"""Parsing: the raw reply becomes an answer, citations and thinking, or a failure that keeps the raw text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ValidationError

from rag_lab.models.json_repair import RepairError, read_json
from rag_lab.models.thinking import split_thinking
from rag_lab.records import Answer, Citation, Passage, Trace
from rag_lab.stages.answer.loops import without_loop
from rag_lab.stages.answer.prompts import NOT_FOUND
from rag_lab.stages.stage import Outcome

_NUMBER = re.compile(r"\d+")


class Reply(BaseModel):
    """The object that the prompt asks for. Models write citations as numbers, strings or objects."""

    answer: str
    citations: list[Any] = []


@dataclass(frozen=True)
class Parse:
    """Read each raw reply; a repair is a fallback with the rule's name, what no rule reads has failed.

    `as_text` takes the whole reply as the answer, which then cites nothing.
    """

    as_text: bool = False

    name: ClassVar[str] = "parse"
    reads: ClassVar[tuple[str, ...]] = ("raw_text", "passages")
    writes: ClassVar[tuple[str, ...]] = ("answer",)
    batch_size: ClassVar[int] = 1000
    costly: ClassVar[bool] = False

    def identity(self) -> Mapping[str, Any]:
        """The version, and whether the reply is the answer."""
        return {"version": 3, **({"as_text": True} if self.as_text else {})}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Parse each trace's reply."""
        return [self._parse(trace) for trace in traces]

    def _parse(self, trace: Trace) -> Outcome:
        read = parse_text if self.as_text else parse_reply
        try:
            answer, rule = read(trace.raw_text or "", trace.passages)
        except RepairError as error:
            return Outcome(status="failed", reason=str(error))
        return Outcome({"answer": answer}, "fallback" if rule else "ok", f"repaired: {rule}" if rule else "")


def parse_reply(raw: str, passages: Sequence[Passage]) -> tuple[Answer, str]:
    """Return the answer in `raw` and the repair rule that was needed ('' for none).

    An answer that goes round in a circle is cut, by such a rule. A citation counts only if it names a passage of the
    context; others are kept as rejected.

    Raises:
        RepairError: if no object with an answer can be read.
    """
    text, thinking = split_thinking(raw)
    value, rule = read_json(text)
    try:
        reply = Reply.model_validate(value)
    except ValidationError:
        raise RepairError("the object in the reply has no text under 'answer'") from None
    return _answer(reply, thinking, rule, passages)


def parse_text(raw: str, passages: Sequence[Passage]) -> tuple[Answer, str]:
    """Return `raw` without its thinking as an answer that cites nothing, and the repair rule; see `parse_reply`."""
    text, thinking = split_thinking(raw)
    return _answer(Reply(answer=text), thinking, "", passages)


def _answer(reply: Reply, thinking: str, rule: str, passages: Sequence[Passage]) -> tuple[Answer, str]:
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
        if passage is None:
            rejected[str(item)] = None
        else:
            accepted.setdefault(passage.number, Citation(passage.number, passage.source, passage.page, _quote(item)))
    return tuple(accepted.values()), tuple(rejected)


def _number(item: Any) -> int:
    """Return the passage number in 2, "2", "[2]" or {"passage": 2}; -1 where there is none."""
    if isinstance(item, dict):
        item = item.get("passage", item.get("number", ""))
    found = _NUMBER.findall(str(item))
    return int(found[0]) if len(found) == 1 and len(found[0]) < 10 else -1


def _quote(item: Any) -> str:
    return str(item.get("quote", "")) if isinstance(item, dict) else ""


def is_abstention(answer: str) -> bool:
    """Tell whether an answer says that the documents do not hold one."""
    return NOT_FOUND.rstrip(".").lower() in answer.lower()
