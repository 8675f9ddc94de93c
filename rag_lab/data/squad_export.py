"""A dataset as SQuAD's JSON, version 2: a file is an article, and a document of it a paragraph."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from rag_lab.corpus.locate import find_quote
from rag_lab.data.dataset import Dataset
from rag_lab.data.places import Documents, Place, judged, question_problem
from rag_lab.records import Problem, Question
from rag_lab.wording import counted

_Asked = dict[Place, list[dict[str, Any]]]  # the questions of each paragraph


def write_squad(dataset: Dataset, documents: Documents, target: Path) -> list[Problem]:
    """Write the file `target`, and return what of the questions it does not hold.

    A question belongs to the first document of its evidence that holds an answer. Unanswerable ones are marked
    `is_impossible` and stand with the first document of all, for the format puts each with one.
    """
    asked, problems = _asked(dataset, documents)
    articles: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for place, document in documents.items():
        articles[document.source].append({"context": document.text, "qas": asked.get(place, [])})
    data = [{"title": source, "paragraphs": paragraphs} for source, paragraphs in articles.items()]
    target.write_text(json.dumps({"version": "v2.0", "data": data}, ensure_ascii=False), encoding="utf-8")
    return problems


def _asked(dataset: Dataset, documents: Documents) -> tuple[_Asked, list[Problem]]:
    asked: _Asked = defaultdict(list)
    found, problems = judged(dataset, documents)
    for question, places in found:
        place, spans, reason = _spans(question, list(places), documents)
        if reason:
            problems.append(question_problem(dataset, question, reason))
        if spans:
            asked[place].append(_item(question, spans))
    first = next(iter(documents))
    asked[first] += [_item(question, []) for question in dataset.questions if not question.answerable]
    return asked, problems


def _item(question: Question, answers: list[dict[str, Any]]) -> dict[str, Any]:
    impossible = not question.answerable
    return {"id": question.question_id, "question": question.text, "answers": answers, "is_impossible": impossible}


def _spans(question: Question, places: list[Place], documents: Documents) -> tuple[Place, list[dict[str, Any]], str]:
    """Return the paragraph of a question, its answers there, and what is lost of it ("" where nothing is)."""
    for place in places:
        text = documents[place].text
        spans = [span for answer in question.answers if (span := find_quote(text, answer))]
        if spans:
            lost = _lost(len(question.answers) - len(spans), len(places) - 1)
            return place, [{"text": text[start:end], "answer_start": start} for start, end in spans], lost
    lacking = "no answer stands in its evidence word for word" if question.answers else "it has no answer"
    return places[0], [], f"was left out: {lacking}"


def _lost(n_answers: int, n_places: int) -> str:
    parts = [counted(n_answers, "answer")] if n_answers else []
    parts += [f"the evidence in {counted(n_places, 'other document')}"] if n_places else []
    return f"lost {' and '.join(parts)}: SQuAD has one paragraph a question, and answers from it" if parts else ""
