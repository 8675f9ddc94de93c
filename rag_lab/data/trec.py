"""TREC's three files: topics (what was asked), qrels (what is relevant) and runs (what was found).

ranx, ir_measures and PyTerrier read them. The unit is the page of a paged file, the file otherwise: its number is
`manual.pdf#p3` or `notes.txt`, with spaces as `%20`. Formats: https://trec.nist.gov, as `trec_eval` reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, unquote

from rag_lab.errors import DatasetError
from rag_lab.records import Question, Trace

Qrels = dict[str, dict[str, int]]  # question -> document -> grade
Run = dict[str, dict[str, float]]  # question -> document -> score, best first

_SAFE = "".join(chr(code) for code in range(33, 127) if chr(code) not in "%<>")
_TOPIC = re.compile(r"<top>\s*<num>(?:\s*Number:)?([^<]*)<title>([^<]*)", re.DOTALL)


def docno(source: str, page: int | None) -> str:
    """Return the number of a document, which holds no whitespace."""
    return quote(source if page is None else f"{source}#p{page}", safe=_SAFE)


def qrels_of(questions: Iterable[Question]) -> Qrels:
    """Return the documents that hold evidence, each of grade 1. Questions without evidence are left out."""
    return {
        question.question_id: {docno(item.source, item.page): 1 for item in question.evidence}
        for question in questions
        if question.evidence
    }


def run_of(traces: Iterable[Trace]) -> Run:
    """Return the documents of each question's ranking, best first; of several parents of a document the best counts.

    Scores fall with the rank by construction, for readers sort by score: 1 / rank.
    """
    run: Run = {}
    for trace in traces:
        found = dict.fromkeys(docno(hit.source, hit.page) for hit in trace.ranked)
        run[trace.question.question_id] = {name: 1 / rank for rank, name in enumerate(found, start=1)}
    return run


def write_topics(path: Path, questions: Iterable[Question]) -> None:
    """Write the questions' ids and texts."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for question in questions:
            text = " ".join(question.text.replace("<", " ").split())
            file.write(f"<top>\n<num> Number: {_word(question.question_id)}\n<title> {text}\n</top>\n")


def write_qrels(path: Path, qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Write lines of question, 0, document, grade."""
    rows = ((_word(asked), "0", name, grade) for asked, found in qrels.items() for name, grade in found.items())
    _write(path, rows)


def write_run(path: Path, run: Mapping[str, Mapping[str, float]], tag: str) -> None:
    """Write lines of question, Q0, document, rank (from 1), score and `tag`, the run's name."""
    rows = (
        (_word(asked), "Q0", name, rank, f"{score:.6f}", _word(tag))
        for asked, found in run.items()
        for rank, (name, score) in enumerate(found.items(), start=1)
    )
    _write(path, rows)


def read_topics(path: Path) -> dict[str, str]:
    """Return the texts by the ids.

    Raises:
        DatasetError: if the file cannot be read or holds no topic.
    """
    topics = {unquote(number.strip()): " ".join(text.split()) for number, text in _TOPIC.findall(_text(path))}
    if not topics:
        raise DatasetError(f"{path} holds no topic: each begins with <top>, then <num> and <title>.")
    return topics


def read_qrels(path: Path) -> Qrels:
    """Return what `write_qrels` wrote.

    Raises:
        DatasetError: if the file cannot be read, or a line has not four fields.
    """
    qrels: Qrels = {}
    for number, (asked, _, name, grade) in _lines(path, 4):
        qrels.setdefault(unquote(asked), {})[name] = int(_number(path, number, grade))
    return qrels


def read_run(path: Path) -> Run:
    """Return what `write_run` wrote.

    Raises:
        DatasetError: if the file cannot be read, or a line has not six fields.
    """
    run: Run = {}
    for number, (asked, _, name, _, score, _) in _lines(path, 6):
        run.setdefault(unquote(asked), {})[name] = _number(path, number, score)
    return {asked: dict(sorted(found.items(), key=lambda item: -item[1])) for asked, found in run.items()}


def _word(text: str) -> str:
    """Return an id without whitespace, which separates the fields."""
    return quote(text, safe=_SAFE)


def _write(path: Path, rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(" ".join(map(str, row)) + "\n" for row in rows)


def _lines(path: Path, n_fields: int) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(_text(path).splitlines(), start=1):
        fields = line.split()
        if fields and len(fields) != n_fields:
            raise DatasetError(f"{path}:{number} has {len(fields)} fields where {n_fields} are needed; mend the line.")
        if fields:
            yield number, fields


def _number(path: Path, line: int, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DatasetError(f"{path}:{line}: {text!r} is no number; mend the line.") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"Cannot read {path}: {error}; give a TREC file in UTF-8.") from None
