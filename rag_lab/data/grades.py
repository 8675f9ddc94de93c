"""Grades of relevance: judgements of others as whole numbers, and what grades a dataset has.

The gain of nDCG is the grade (Järvelin and Kekäläinen 2002), so it is a ratio of grades: all of them times one number
leave it as it was, and judgements like 0.5 and 1 become 1 and 2.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from rag_lab.data.questions_file import MAX_GRADE
from rag_lab.records import Question

_MAX_DENOMINATOR = 1000  # thirds of a judge are told from thousandths


@dataclass(frozen=True, slots=True)
class GradeScale:
    """How the judgements of one source become grades: times `factor`; what is left of a whole number is rounded up."""

    factor: Fraction = Fraction(1)
    is_exact: bool = True

    def grade(self, score: float) -> int:
        """Return a judgement as a grade; 0 for what is not relevant, as spam of -2."""
        if score <= 0:
            return 0
        scaled = self.factor * (_fraction(score) if self.is_exact else Fraction(score))
        return min(max(1, math.ceil(scaled)), MAX_GRADE)

    @property
    def note(self) -> str:
        """What was done to the judgements, a sentence; "" where they are grades as they are."""
        if self.factor == 1:
            return ""
        if self.is_exact:
            return (
                f"judgements were multiplied by {self.factor}, since grades are whole numbers up to {MAX_GRADE}; nDCG "
                "stays as it was."
            )
        return (
            f"judgements were scaled to grades of 1 to {MAX_GRADE} and rounded up, since no factor makes all of them "
            "whole; nDCG changes a little, and what is above 0 stays relevant."
        )


def grade_scale(scores: Iterable[float]) -> GradeScale:
    """Return the scale by which `scores` become grades without changing nDCG, or as little as whole numbers can."""
    positive = sorted({score for score in scores if score > 0})
    fractions = [_fraction(score) for score in positive]
    if all(part.denominator == 1 and part <= MAX_GRADE for part in fractions):
        return GradeScale()
    if all(math.isclose(part, score, rel_tol=1e-9) for part, score in zip(fractions, positive, strict=True)):
        whole = math.lcm(*(part.denominator for part in fractions))
        numerators = [int(part * whole) for part in fractions]
        shared = math.gcd(*numerators) if max(numerators) > MAX_GRADE else 1
        if max(numerators) // shared <= MAX_GRADE:
            return GradeScale(Fraction(whole, shared))
    return GradeScale(MAX_GRADE / Fraction(positive[-1]), is_exact=False)


def grades_told(questions: Iterable[Question]) -> str:
    """Return how many items have each grade, highest first; "" where all are 1, as labels without grades are."""
    counts = Counter(item.grade for question in questions for item in (*question.evidence, *question.not_relevant))
    if not counts.keys() - {1}:
        return ""
    names = {0: "grade 0 (judged not relevant, so no evidence)"}
    return ", ".join(
        f"{names.get(grade, f'grade {grade}')}: {counts[grade]:,}" for grade in sorted(counts, reverse=True)
    )


def _fraction(score: float) -> Fraction:
    return Fraction(score).limit_denominator(_MAX_DENOMINATOR)
