"""What the judge said for one score, as lines for people: made from the fields of its replies, whatever the metric."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rag_lab._kit.wording import counted

MAX_CHARS = 10_000  # of all lines: more than the longest reply
_CONTEXT = "retrieved_contexts"

# What RAGAs' instructions mean by 0 and 1. A verdict without a statement is on a passage as a whole.
_WORDS = {
    "verdict": ("not supported", "supported"),
    "attributed": ("not attributed", "attributed"),
    "noncommittal": ("substantive", "evasive"),
}
_OF_PASSAGE = ("not useful", "useful")
_CLASSES = {"TP": "in answer and reference", "FP": "in the answer alone", "FN": "in the reference alone"}
_TEXTS = ("statement", "question")
_REASON = "reason"

Reply = tuple[str, Mapping[str, Any]]  # the prompt, and the fields of the reply


def judgement_lines(replies: Iterable[Reply], arguments: Mapping[str, Any]) -> str:
    """Return a line for each judgement, in the order of the calls: `supported (passage 2): STATEMENT — REASON`.

    White space is folded. Statements that the judge wrote and then judged stand once, with the judgement. Beyond
    `MAX_CHARS` the rest is counted and not kept. `arguments` are the metric's, by RAGAs' names: the texts that
    statements are judged against.
    """
    replies = list(replies)
    judged = {item.get("statement") for _, reply in replies for item in _items(reply)}
    # What to call a text that the judge read alone.
    texts = {"response": "answer", "reference": "reference"}
    places: dict[str | None, str] = {arguments[name]: text for name, text in texts.items() if name in arguments}
    for number, text in reversed(list(enumerate(arguments.get(_CONTEXT, ()), 1))):
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
            words = _OF_PASSAGE if name == "verdict" and "statement" not in fields else _WORDS[name]
            heads.append(words[bool(value)])
        elif name not in (*_TEXTS, _REASON):
            heads.append(f"{name} {_folded(value)}")
    text = ", ".join(heads) + (f" ({place})" if place else "")
    text += "".join(f": {_folded(fields[name])}" for name in _TEXTS if name in fields)
    reason = _folded(fields.get(_REASON, ""))
    return f"{text} — {reason}" if reason else text


def _items(reply: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for members in reply.values():
        if isinstance(members, list):
            yield from (one for one in members if isinstance(one, dict))


def _folded(value: object) -> str:
    return " ".join(str(value).split())
