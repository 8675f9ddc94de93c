"""The documents that hold a question's evidence, for formats that name documents and know no quotes."""

from __future__ import annotations

from collections.abc import Mapping

from rag_lab.corpus.locate import find_quote
from rag_lab.data.dataset import Dataset
from rag_lab.data.questions_file import QUESTIONS_FILE
from rag_lab.records import Document, Evidence, Problem, Question

Place = tuple[str, int | None]  # source and page of a document
Documents = Mapping[Place, Document]
Placed = list[tuple[Question, dict[Place, int]]]  # with the grade of each place

_LOST = "lost its evidence in {!r}: it names no page that was read, nor a quote that tells the page"


def place_all(dataset: Dataset, documents: Documents) -> tuple[Placed, list[Problem]]:
    """Return every answerable question with the places of its evidence, and a problem for each item that has none."""
    placed: Placed = []
    problems = []
    for question in dataset.questions:
        if question.answerable:
            found = {item: _place(item, documents) for item in question.evidence}
            placed.append((question, _graded({item: place for item, place in found.items() if place})))
            lost = [item.source for item, place in found.items() if place is None]
            problems += [question_problem(dataset, question, _LOST.format(source)) for source in lost]
    return placed, problems


def judged(dataset: Dataset, documents: Documents) -> tuple[Placed, list[Problem]]:
    """Return what `place_all` does, but leave out the questions that have no place, each with a problem of its own."""
    placed, problems = place_all(dataset, documents)
    for question, places in placed:
        if not places:
            reason = "none of its evidence was found" if question.evidence else "it has no evidence"
            problems.append(question_problem(dataset, question, f"was left out: {reason}"))
    return [(question, places) for question, places in placed if places], problems


def graded(question: Question, places: Mapping[Place, int], documents: Documents) -> dict[Place, int]:
    """Return the grade of every place that was judged: 0 of those that hold no evidence."""
    found = (_place(item, documents) for item in question.not_relevant)
    return {**{place: 0 for place in found if place}, **places}


def _graded(places: Mapping[Evidence, Place]) -> dict[Place, int]:
    """Return the highest grade of the evidence at each place."""
    grades: dict[Place, int] = {}
    for item, place in places.items():
        grades[place] = max(item.grade, grades.get(place, 0))
    return grades


def question_problem(dataset: Dataset, question: Question, reason: str) -> Problem:
    """Return a problem of one question; `reason` goes on after its id."""
    return Problem(str(dataset.path / QUESTIONS_FILE), f"question {question.question_id!r} {reason}.")


def _place(item: Evidence, documents: Documents) -> Place | None:
    """Return the page that is named; of a file whose page is not named its only document, or the one with the quote."""
    if (item.source, item.page) in documents:
        return item.source, item.page
    if item.page is not None:
        return None
    own = [place for place in documents if place[0] == item.source]
    quoting = (place for place in own if find_quote(documents[place].text, item.quote or ""))
    return own[0] if len(own) == 1 else next(quoting, None)
