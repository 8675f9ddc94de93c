"""TREC's files of a run: topics (what was asked), qrels (what is relevant) and rankings (what was found).

ranx, ir_measures and PyTerrier read them. The unit is the page of a paged file, the file otherwise: its number is
`manual.pdf#p3` or `notes.txt`, with spaces as `%20`. Where a question's evidence names a paged file without a page, the
file is the unit of it, and of all files where the evidence names files alone. Formats: https://trec.nist.gov, as
`trec_eval` reads them.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from rag_lab.records import Evidence, Hit, Question, Trace

Qrels = dict[str, dict[str, float]]  # question -> document -> grade
Run = dict[str, dict[str, float]]  # question -> document -> score, best first

_SAFE = "".join(chr(code) for code in range(33, 127) if chr(code) not in "%<>")


def docno(source: str, page: int | None) -> str:
    """Return the number of a document, which holds no whitespace."""
    return quote(source if page is None else f"{source}#p{page}", safe=_SAFE)


def qrels_of(questions: Iterable[Question]) -> Qrels:
    """Return the documents that were judged, with their grades. Questions without evidence are left out."""
    qrels: Qrels = {}
    for question in questions:
        if question.answerable and question.evidence:
            grades = qrels.setdefault(question.question_id, {})
            for item in (*question.evidence, *question.not_relevant):  # several items may stand in one document
                name = _docno_for(question, item)
                grades[name] = max(item.grade, grades.get(name, 0))
    return qrels


def run_of(traces: Iterable[Trace]) -> Run:
    """Return the documents of each question's ranking, best first; of several parents of a document the best counts.

    Scores fall with the rank by construction, for readers sort by score: 1 / rank.
    """
    run: Run = {}
    for trace in traces:
        found = dict.fromkeys(_docno_for(trace.question, hit) for hit in trace.ranked)
        run[trace.question.question_id] = {name: 1 / rank for rank, name in enumerate(found, start=1)}
    return run


def write_topics(path: Path, questions: Iterable[Question]) -> None:
    """Write the questions' ids and texts; a `<`, which would begin a tag, becomes a space."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for question in questions:
            text = " ".join(question.text.replace("<", " ").split())
            file.write(f"<top>\n<num> Number: {word(question.question_id)}\n<title> {text}\n</top>\n")


def write_qrels(path: Path, qrels: Mapping[str, Mapping[str, float]]) -> None:
    """Write lines of question, 0, document, grade."""
    rows = ((word(asked), "0", name, grade) for asked, found in qrels.items() for name, grade in found.items())
    _write(path, rows)


def write_run(path: Path, run: Mapping[str, Mapping[str, float]], tag: str) -> None:
    """Write lines of question, Q0, document, rank (from 1), score and `tag`, the run's name."""
    rows = (
        (word(asked), "Q0", name, rank, f"{score:.6f}", word(tag))
        for asked, found in run.items()
        for rank, (name, score) in enumerate(found.items(), start=1)
    )
    _write(path, rows)


def _docno_for(question: Question, place: Evidence | Hit) -> str:
    """Return a document's number; the file's where the question's evidence is the file, whichever page is found.

    Where its labels name files alone, that holds of every file: a rank is a file then. A copy of a file that evidence
    names has that file's number: readers know nothing of bytes.
    """
    judged = (*question.evidence, *question.not_relevant)
    source = next((item.source for item in judged if place.source in (item.source, *item.copies)), place.source)
    is_whole = any(item.source == source and item.page is None for item in judged)
    names_files = bool(judged) and all(item.page is None and item.quote is None for item in judged)
    return docno(source, None if is_whole or names_files else place.page)


def word(text: str) -> str:
    """Return an id without whitespace, which separates the fields."""
    return quote(text, safe=_SAFE)


def _write(path: Path, rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(" ".join(map(str, row)) + "\n" for row in rows)
