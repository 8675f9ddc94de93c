"""The documents that hold a question's evidence, for formats that name documents and know no quotes."""

from __future__ import annotations

from collections.abc import Mapping

from rag_lab.corpus.index.locate import find_quote
from rag_lab.data.dataset import Dataset
from rag_lab.records import Document, Evidence, Problem, Question

Place = tuple[str, int | None]  # source and page of a document
Documents = Mapping[Place, Document]
Grades = dict[Place, int]

_LOST = "lost its evidence in {!r}: it names no page that was read, nor a quote that tells the page"


def judged(dataset: Dataset, documents: Documents) -> tuple[list[tuple[Question, Grades]], list[Problem]]:
    """Return the questions with the grade of every place that was judged: 0 of those that hold no evidence.

    Left out, each with a problem, are unanswerable questions, those of whose evidence no place was found, and single
    items of evidence without a place.
    """
    found: list[tuple[Question, Grades]] = []
    problems = []
    for question in dataset.questions:
        grades, reasons = _grades(question, documents)
        problems += [question_problem(dataset, question, reason) for reason in reasons]
        if grades:
            found.append((question, grades))
    return found, problems


def question_problem(dataset: Dataset, question: Question, reason: str) -> Problem:
    """Return a problem of one question; `reason` goes on after its id."""
    return Problem(str(dataset.questions_path), f"question {question.question_id!r} {reason}.")


def _grades(question: Question, documents: Documents) -> tuple[Grades, list[str]]:
    """Return the highest grade at each place, none where the question is left out, and what is lost."""
    if not question.answerable:
        return {}, ["was left out: it is unanswerable, which the format cannot say"]
    if not question.evidence:
        return {}, ["was left out: it has no evidence"]
    grades: Grades = {}
    lost = []
    for item in question.evidence:
        if place := _place(item, documents):
            grades[place] = max(item.grade, grades.get(place, 0))
        else:
            lost.append(_LOST.format(item.source))
    if not grades:
        return {}, [*lost, "was left out: none of its evidence was found"]
    without = (_place(item, documents) for item in question.not_relevant)
    return {**{place: 0 for place in without if place}, **grades}, lost


def _place(item: Evidence, documents: Documents) -> Place | None:
    """Return the page that is named; of a file whose page is not named its only document, or the one with the quote."""
    if (item.source, item.page) in documents:
        return item.source, item.page
    if item.page is not None:
        return None
    own = [place for place in documents if place[0] == item.source]
    quoting = (place for place in own if find_quote(documents[place].text, item.quote or ""))
    return own[0] if len(own) == 1 else next(quoting, None)
