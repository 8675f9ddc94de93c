"""Evidence that an index does not hold, so that no search can find it: told while the index is there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rag_lab.data.evidence import distinct
from rag_lab.evaluation.measures.coverage import covers
from rag_lab.records import Evidence, Question, Span


@dataclass(frozen=True, slots=True)
class _Place:
    source: str
    page: int | None
    start: int
    end: int


def unindexed(spans: Iterable[Span], questions: Sequence[Question]) -> dict[str, list[int]]:
    """Return the places (from 0) of the evidence of each question that no passage covers; other questions stand not.

    Labels of one passage are one, and have one place.

    Args:
        spans: where the passages of the index stand.
        questions: with their evidence as located in it.
    """
    wanted = {source for question in questions for one in question.evidence for source in (one.source, *one.copies)}
    held: dict[str, list[_Place]] = {}
    for span in spans:
        if span[0] in wanted:
            held.setdefault(span[0], []).append(_Place(*span))
    found = {
        question.question_id: [
            place for place, one in enumerate(distinct(question.evidence)) if not _is_held(one, held)
        ]
        for question in questions
    }
    return {name: places for name, places in found.items() if places}


def _is_held(evidence: Evidence, held: dict[str, list[_Place]]) -> bool:
    sources = (evidence.source, *evidence.copies)
    return any(covers(place, evidence) for source in sources for place in held.get(source, ()))
