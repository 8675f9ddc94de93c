"""TREC's topics: what was asked. A topic is a `<top>` with `<num>` and `<title>`, and whatever tags a track adds.

TREC's own files close no tag but the topic and write `<num> Number: 51` and `<title> Topic: Airbus`; later tracks close
every tag. Both are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

from rag_lab.data.trec import read_text, word
from rag_lab.errors import DatasetError
from rag_lab.records import Problem, Question

_TOP = re.compile("<top>", re.IGNORECASE)
_TAG = re.compile(r"<(/?[a-z]\w*)>", re.IGNORECASE)
_PREFIXES = {"num": "Number:", "title": "Topic:"}


def read_topics(path: Path) -> tuple[dict[str, str], list[Problem]]:
    """Return the texts by the ids, and a problem for each topic that was left out.

    Raises:
        DatasetError: if the file cannot be read or holds no topic.
    """
    topics: dict[str, str] = {}
    problems = []
    for line, block in _blocks(path):
        number, title = _fields(block)
        fault = _fault(number, title, topics)
        if fault:
            problems.append(Problem(str(path), f"{fault}; the topic was left out.", line))
        else:
            topics[number] = title
    if not topics and not problems:
        raise DatasetError(f"{path} holds no topic: each begins with <top>, then <num> and <title>.")
    return topics, problems


def write_topics(path: Path, questions: Iterable[Question]) -> None:
    """Write the questions' ids and texts; a `<`, which would begin a tag, becomes a space."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for question in questions:
            text = " ".join(question.text.replace("<", " ").split())
            file.write(f"<top>\n<num> Number: {word(question.question_id)}\n<title> {text}\n</top>\n")


def _blocks(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each topic with the line that it begins on."""
    head, *blocks = _TOP.split(read_text(path))
    line = 1 + head.count("\n")
    for block in blocks:
        yield line, block
        line += block.count("\n")


def _fields(block: str) -> tuple[str, str]:
    """Return number and title, "" where there is none; the text of a tag ends where another begins."""
    _, *parts = _TAG.split(block)
    found: dict[str, str] = {}
    for tag, text in zip(parts[::2], parts[1::2], strict=True):
        found.setdefault(tag.lower(), " ".join(text.split()))
    number, title = (found.get(tag, "").removeprefix(prefix).strip() for tag, prefix in _PREFIXES.items())
    return unquote(number), title


def _fault(number: str, title: str, earlier: Iterable[str]) -> str:
    if not number.strip():
        return "it has no number: <num> is missing or empty"
    if not title:
        return f"topic {number!r} has no text: <title> is missing or empty"
    return f"the number {number!r} was used before" if number in earlier else ""
