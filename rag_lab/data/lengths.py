"""How long questions, answers and documents are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rag_lab.corpus.sentence_units import words
from rag_lab.records import Document, Question


@dataclass(frozen=True, slots=True)
class Lengths:
    """The spread of some lengths; `unit` is what they count. All are 0 where there is nothing to measure."""

    n: int
    unit: str
    shortest: int
    median: int  # the lower one of an even number
    most: int  # 9 of 10 are at most as long
    longest: int

    def __str__(self) -> str:
        if not self.n:
            return "none"
        return f"{self.shortest} to {self.longest} {self.unit}, median {self.median}, 90% up to {self.most}"


def lengths_of(questions: Iterable[Question], documents: Iterable[Document]) -> dict[str, Lengths]:
    """Return the lengths of questions and answers in words, and of documents in characters."""
    asked = list(questions)
    answers = [answer for question in asked for answer in question.answers]
    return {
        "questions": _spread([len(words(question.text)) for question in asked], "words"),
        "answers": _spread([len(words(answer)) for answer in answers], "words"),
        "documents": _spread([len(document.text) for document in documents], "characters"),
    }


def _spread(values: Sequence[int], unit: str) -> Lengths:
    if not values:
        return Lengths(0, unit, 0, 0, 0, 0)
    ranked = sorted(values)
    return Lengths(len(ranked), unit, ranked[0], _quantile(ranked, 0.5), _quantile(ranked, 0.9), ranked[-1])


def _quantile(ranked: Sequence[int], share: float) -> int:
    """Return the smallest value that at least `share` of the values do not exceed."""
    return next(value for number, value in enumerate(ranked, start=1) if number >= share * len(ranked))
