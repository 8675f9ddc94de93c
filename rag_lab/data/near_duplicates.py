"""Questions that differ by a few words or their order: they count twice, and their scores are not independent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_lab.records import Question

_LEAST = 90.0  # of 100: similarity of the sorted words by indel distance, of which 90 is about one word in ten
_ROWS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class NearDuplicate:
    """Two questions and how alike their words are, from 0 to 1."""

    first: str
    second: str
    similarity: float

    def __str__(self) -> str:
        return f"{self.first}, {self.second}: {self.similarity:.2f}"


def near_duplicates(questions: Sequence[Question]) -> list[NearDuplicate]:
    """Return the pairs that are nearly the same in their words, in any order, most alike first.

    Pairs whose text is the same but for case and spaces are left out: those are duplicates.
    """
    return sorted(_pairs(questions), key=lambda pair: (-pair.similarity, pair.first, pair.second))


def _pairs(questions: Sequence[Question]) -> Iterator[NearDuplicate]:
    from rapidfuzz import fuzz, process

    texts = [" ".join(question.text.casefold().split()) for question in questions]
    for start in range(0, len(texts), _ROWS_AT_ONCE):
        rows = process.cdist(
            texts[start : start + _ROWS_AT_ONCE], texts[start:], scorer=fuzz.token_sort_ratio, score_cutoff=_LEAST
        )
        for row, column in zip(*rows.nonzero(), strict=True):
            if row < column and texts[start + row] != texts[start + column]:
                ids = questions[start + row].question_id, questions[start + column].question_id
                yield NearDuplicate(*ids, float(rows[row, column]) / 100)
