"""Reading a judge's reply: from text to the object RAGAs asked for, or one sentence why not, and to lines for people.

RAGAs takes some empty or impossible replies for perfect ones (no statement at all counts as a perfect match in answer
correctness, a verdict of 7 as seven), so these are refused here.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from rag_lab._kit.wording import counted
from rag_lab.models.protocols import ChatReply

Reply = TypeVar("Reply", bound=BaseModel)

# RAGAs declares these as any integer and means these ranges.
_HIGHEST = {"verdict": 1, "attributed": 1, "noncommittal": 1, "rating": 2}
_RATINGS = {"AnswerAccuracyOutput": (0, 2, 4)}  # by the reply's model, where not every number up to the highest will do
_NEVER_EMPTY = frozenset({"statements", "claims", "classifications", "question"})
_CLASSES = {"TP": "in answer and reference", "FP": "in the answer alone", "FN": "in the reference alone"}
# What RAGAs' instructions mean by 0 and 1. A verdict without a statement is on a passage as a whole.
_WORDS = {
    "verdict": ("not supported", "supported"),
    "attributed": ("not attributed", "attributed"),
    "noncommittal": ("substantive", "evasive"),
}
MAX_CHARS = 10_000  # of all lines for one score: more than the longest reply


class JudgeError(Exception):
    """A reply that gives no score. `permanent` is False where another attempt may give one."""

    def __init__(self, reason: str, *, permanent: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.permanent = permanent


class UnusableReply(JudgeError):  # noqa: N818
    """A reply that came and cannot be used; a sampled one may do."""


def read_reply(reply: ChatReply, model: type[Reply]) -> Reply:
    """Return the reply's first JSON object as `model`.

    Raises:
        UnusableReply: if the prompt was read, and the reply is empty, no JSON, cut off, of another shape, or void.
        JudgeError: if the call failed.
    """
    if reply.error and reply.tokens_in and not reply.transient:
        raise UnusableReply(f"the judge failed: {reply.error}")
    if reply.error:
        raise JudgeError(f"the judge failed: {reply.error}", permanent=not reply.transient)
    data = _first_object(reply)
    try:
        result = model.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UnusableReply(f"the judge's reply does not fit the schema: {where}: {first['msg']}") from None
    _refuse_impossible(result.model_dump(), _RATINGS.get(model.__name__))
    return result


@cache
def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the model's JSON schema with the ranges that RAGAs means, for judges that can be held to a schema."""
    schema = model.model_json_schema()
    parts = (schema, *schema.get("$defs", {}).values())
    for name, field in (one for part in parts for one in part.get("properties", {}).items()):
        if name == "rating" and model.__name__ in _RATINGS:
            field |= {"enum": list(_RATINGS[model.__name__])}
        elif name in _HIGHEST:
            field |= {"minimum": 0, "maximum": _HIGHEST[name]}
        if name in _NEVER_EMPTY:
            field |= {"minItems": 1} if field.get("type") == "array" else {"minLength": 1}
    return schema


def _first_object(reply: ChatReply) -> Any:
    start = reply.text.find("{")
    if not reply.text.strip():
        raise UnusableReply(
            "the judge thought and wrote no reply" if reply.has_thought else "the judge's reply is empty"
        )
    if start < 0:
        raise UnusableReply(f"the judge's reply holds no JSON object: {_excerpt(reply.text)}")
    try:
        return json.JSONDecoder(strict=False).raw_decode(reply.text, start)[0]
    except (ValueError, RecursionError):
        cut = "is cut off at its token limit" if reply.truncated else "is broken JSON"
        raise UnusableReply(f"the judge's reply {cut}: {_excerpt(reply.text)}") from None


def _refuse_impossible(data: Mapping[str, Any], ratings: Sequence[int] | None) -> None:
    for name, value in _items(data):
        if name == "rating" and ratings:
            if value not in ratings:
                raise UnusableReply(f"the judge's rating is {value}; allowed are {', '.join(map(str, ratings))}")
        elif name in _HIGHEST and not 0 <= value <= _HIGHEST[name]:
            raise UnusableReply(f"the judge's {name} is {value}; allowed is 0 to {_HIGHEST[name]}")
        if name in _NEVER_EMPTY and not value:
            raise UnusableReply(f"the judge's reply has an empty {name!r}")
    if data.keys() >= _CLASSES.keys() and not any(data[name] for name in _CLASSES):
        raise UnusableReply("the judge classified no statement")


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield every key with its value, at any depth."""
    if isinstance(value, dict):
        yield from value.items()
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _items(child)


def _excerpt(text: str, max_chars: int = 80) -> str:
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= max_chars else flat[:max_chars] + "…")


def judgement_lines(replies: Iterable[tuple[str, Mapping[str, Any]]], arguments: Mapping[str, Any]) -> str:
    """Return what the judge said for one score, a line a judgement, as `supported (passage 2): STATEMENT — REASON`.

    White space is folded. Statements that the judge wrote and then judged stand once, with the judgement. Beyond
    `MAX_CHARS` the rest is counted and not kept. `arguments` are the metric's, by RAGAs' names: the texts that
    statements are judged against.
    """
    replies = list(replies)
    lists = [each for _, reply in replies for each in reply.values() if isinstance(each, list)]
    judged = {one.get("statement") for each in lists for one in each if isinstance(one, dict)}
    # What to call a text that the judge read alone.
    texts = {"response": "answer", "reference": "reference"}
    places: dict[str | None, str] = {arguments[name]: text for name, text in texts.items() if name in arguments}
    for number, text in reversed(list(enumerate(arguments.get("retrieved_contexts", ()), 1))):
        places[text] = f"passage {number}"
    lines = [line for prompt, reply in replies for line in _lines(reply, places.get(_context(prompt)), judged)]
    length = 0
    for place, line in enumerate(lines):
        length += len(line)
        if length > MAX_CHARS:
            rest = lines[place:]
            more = f"… {counted(len(rest), 'more line')} of {sum(map(len, rest)):,} characters not kept"
            return "\n".join([*lines[:place], more])
    return "\n".join(lines)


def _context(prompt: str) -> str | None:
    """Return the `context` of the input at the end of RAGAs' prompt, which is JSON; None where there is none."""
    _, found, rest = prompt.rpartition("\ninput: ")
    try:
        data = json.JSONDecoder().raw_decode(rest)[0] if found else None
    except ValueError:
        return None
    context = data.get("context") if isinstance(data, dict) else None
    return context if isinstance(context, str) else None


def _lines(reply: Mapping[str, Any], place: str | None, judged: set[Any]) -> Iterator[str]:
    own = {name: value for name, value in reply.items() if not isinstance(value, list)}
    if own:
        yield _line(own, "", place)
    for name, members in reply.items():
        if isinstance(members, list):
            yield from (_line(one, _CLASSES.get(name, ""), place) for one in members if isinstance(one, dict))
            texts = [_folded(one) for one in members if not isinstance(one, dict) and one not in judged]
            if texts or (not members and name not in _CLASSES):
                yield f"{name}: {' | '.join(texts) or 'none'}"


def _line(fields: Mapping[str, Any], group: str, place: str | None) -> str:
    heads = [group] if group else []
    for name, value in fields.items():
        if name in _WORDS:
            words = ("not useful", "useful") if name == "verdict" and "statement" not in fields else _WORDS[name]
            heads.append(words[bool(value)])
        elif name not in ("statement", "question", "reason"):
            heads.append(f"{name} {_folded(value)}")
    text = ", ".join(heads) + (f" ({place})" if place else "")
    text += "".join(f": {_folded(fields[name])}" for name in ("statement", "question") if name in fields)
    reason = _folded(fields.get("reason", ""))
    return f"{text} — {reason}" if reason else text


def _folded(value: object) -> str:
    return " ".join(str(value).split())
