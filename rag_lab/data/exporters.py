"""A dataset in other programs' formats: BEIR, SQuAD, a table with RAGAs' columns, TREC's topics and qrels."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rag_lab.corpus.folder import load_folder
from rag_lab.corpus.locate import find_quote
from rag_lab.data.dataset import Dataset
from rag_lab.data.questions_file import QUESTIONS_FILE
from rag_lab.data.trec import docno
from rag_lab.data.trec_folder import DOCUMENTS, write_judged
from rag_lab.errors import DatasetError, unknown_name
from rag_lab.records import Document, Problem, Question

_Documents = dict[tuple[str, int | None], Document]


def export_dataset(dataset: Dataset, format: str, target: Path) -> list[Problem]:
    """Write `dataset` to `target`, and return what the format cannot hold.

    Args:
        dataset: whose corpus and questions are written.
        format: a key of `EXPORTERS`: `beir` and `trec` make a folder, `squad` a JSON file, `table` a JSONL file.
        target: must not exist.

    Raises:
        DatasetError: if the format is unknown, or `target` exists or cannot be written.
    """
    if format not in EXPORTERS:
        raise DatasetError(unknown_name("format", format, EXPORTERS))
    if target.exists():
        raise DatasetError(f"{target} exists and is never overwritten; choose another name or remove it.")
    documents = {(item.source, item.page): item for item in load_folder(dataset.corpus_dir).documents}
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        return EXPORTERS[format](dataset, documents, target)
    except OSError as error:
        raise DatasetError(f"Cannot write {target}: {error.strerror}; choose another place.") from None


def _write_beir(dataset: Dataset, documents: _Documents, target: Path) -> list[Problem]:
    (target / "qrels").mkdir(parents=True)
    rows = [{"_id": docno(*place), "title": item.title, "text": item.text} for place, item in documents.items()]
    _write_lines(target / "corpus.jsonl", rows)
    asked = [(question, _places(question, documents)) for question in dataset.questions]
    found = [(question, places) for question, places in asked if places]
    queries = [{"_id": q.question_id, "text": q.text, "metadata": {"answers": list(q.answers)}} for q, _ in found]
    _write_lines(target / "queries.jsonl", queries)
    lines = [f"{q.question_id}\t{docno(*place)}\t1\n" for q, places in found for place in places]
    (target / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines), encoding="utf-8")
    return [_problem(dataset, question, "was left out: it has no evidence") for question, places in asked if not places]


def _write_trec(dataset: Dataset, documents: _Documents, target: Path) -> list[Problem]:
    target.mkdir()
    write_judged(target, dataset.questions)
    _write_lines(target / DOCUMENTS, [{"docno": docno(*p), "text": d.text} for p, d in documents.items()])
    return []


def _write_table(dataset: Dataset, documents: _Documents, target: Path) -> list[Problem]:
    rows = [
        {
            "user_input": question.text,
            "reference": question.answers[0] if question.answers else "",
            "reference_contexts": [documents[place].text for place in _places(question, documents)],
        }
        for question in dataset.questions
    ]
    _write_lines(target, rows)
    several = (question for question in dataset.questions if len(question.answers) > 1)
    return [_problem(dataset, question, "has several answers, of which the first was written") for question in several]


def _write_squad(dataset: Dataset, documents: _Documents, target: Path) -> list[Problem]:
    """Write version 2's JSON. A question belongs to the first document of its evidence that holds an answer."""
    asked: dict[tuple[str, int | None], list[dict[str, Any]]] = defaultdict(list)
    problems = []
    for question in dataset.questions:
        place, answers = _spans(question, documents)
        if place is None:
            problems.append(_problem(dataset, question, "was left out: no answer stands in its evidence"))
        else:
            asked[place].append({"id": question.question_id, "question": question.text, "answers": answers})
    articles: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for place, item in documents.items():
        articles[item.source].append({"context": item.text, "qas": asked[place]})
    data = [{"title": source, "paragraphs": paragraphs} for source, paragraphs in articles.items()]
    text = json.dumps({"version": "v2.0", "data": data}, ensure_ascii=False)
    target.write_text(text, encoding="utf-8")
    return problems


def _spans(question: Question, documents: _Documents) -> tuple[tuple[str, int | None] | None, list[dict[str, Any]]]:
    for place in _places(question, documents):
        text = documents[place].text
        spans = [span for answer in question.answers if (span := find_quote(text, answer))]
        if spans:
            return place, [{"text": text[start:end], "answer_start": start} for start, end in spans]
    return None, []


def _places(question: Question, documents: _Documents) -> list[tuple[str, int | None]]:
    """Return the documents of a question's evidence; of a file whose page is not named, the one with the quote."""
    places: dict[tuple[str, int | None], None] = {}
    for item in question.evidence:
        if (item.source, item.page) in documents:
            places[item.source, item.page] = None
            continue
        quoted = (p for p, d in documents.items() if p[0] == item.source and find_quote(d.text, item.quote or ""))
        if place := next(quoted, None):
            places[place] = None
    return list(places)


def _problem(dataset: Dataset, question: Question, reason: str) -> Problem:
    return Problem(str(dataset.path / QUESTIONS_FILE), f"question {question.question_id!r} {reason}.")


def _write_lines(path: Path, rows: Iterable[Any]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


EXPORTERS: dict[str, Callable[[Dataset, _Documents, Path], list[Problem]]] = {
    "beir": _write_beir,
    "squad": _write_squad,
    "table": _write_table,
    "trec": _write_trec,
}
