"""Labels of one question that name the same passage: a place listed twice, or files that read the same.

To find one of them is to find them all, so they count as one: otherwise a ranking would be asked for the same text
twice, and one that found it once would have found a half.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rag_lab.records import Evidence

_Passage = tuple[str, int | None, int | None, int | None, str]  # file, page, span, and the quote where it has no span


@dataclass(frozen=True, slots=True)
class RepeatedEvidence:
    """A passage that a question's evidence names more than once, by the places that name it."""

    question_id: str
    places: tuple[str, ...]  # `manual.pdf, page 3`

    def __str__(self) -> str:
        return f"{self.question_id}: {'; '.join(self.places)}"


def distinct(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return the evidence with each passage once, in order; of labels of one passage the first of the highest grade.

    The evidence is to be located: spans and `copies` say what is the same.
    """
    return tuple(max(items, key=lambda item: item.grade) for items in _by_passage(evidence))


def repeated_evidence(
    located: Mapping[str, Sequence[Evidence]], same_files: Mapping[str, Sequence[str]]
) -> Iterator[RepeatedEvidence]:
    """Yield the passages that are named more than once.

    Args:
        located: the evidence of each question, with its spans.
        same_files: of a file that reads as others do, all of these.
    """
    for question_id, evidence in located.items():
        items = (replace(item, copies=tuple(same_files.get(item.source, ()))) for item in evidence)
        for named in _by_passage(items):
            if len(named) > 1:
                yield RepeatedEvidence(question_id, tuple(map(_place, named)))


def _by_passage(evidence: Iterable[Evidence]) -> list[list[Evidence]]:
    passages: dict[_Passage, list[Evidence]] = {}
    for item in evidence:
        quote = item.quote or "" if item.start is None else ""
        name = min((item.source, *item.copies))
        passages.setdefault((name, item.page, item.start, item.end, quote), []).append(item)
    return list(passages.values())


def _place(item: Evidence) -> str:
    return item.source if item.page is None else f"{item.source}, page {item.page}"
