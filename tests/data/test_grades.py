from __future__ import annotations

from fractions import Fraction

import pytest
from factories import make_evidence, make_question
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.data.evidence import GradeScale, grade_scale, grades_text
from rag_lab.records import Evidence


@pytest.mark.parametrize(
    ("scores", "factor", "grades"),
    [
        ([2.0, 1.0, 0.0, -2.0], 1, [2, 1, 0, 0]),
        ([100.0, 3.0], 1, [100, 3]),
        ([0.5, 1.0, 0.0], 2, [1, 2, 0]),
        ([1 / 3, 2 / 3, 1.0], 3, [1, 2, 3]),
        ([0.2, 0.35], 20, [4, 7]),
        ([200.0, 400.0, 1000.0], Fraction(1, 200), [1, 2, 5]),
        ([0.0], 1, [0]),
        ([], 1, []),
    ],
)
def test_judgements_become_whole_grades_in_the_same_ratio(
    scores: list[float], factor: Fraction, grades: list[int]
) -> None:
    scale = grade_scale(scores)
    assert (scale.factor, [scale.grade(score) for score in scores]) == (factor, grades)
    assert (scale.note == "") == (factor == 1)


def test_what_no_factor_makes_whole_keeps_its_order_and_is_said() -> None:
    scores = [0.12345, 0.777, 3.0, 1000.0]
    scale = grade_scale(scores)
    assert [scale.grade(score) for score in scores] == [1, 1, 1, 100]
    assert "rounded up" in scale.note


@given(st.lists(st.floats(-5, 1e6, allow_nan=False), max_size=6))
def test_grades_are_whole_in_bounds_in_order_and_relevant_where_the_judgement_is(scores: list[float]) -> None:
    scale = grade_scale(scores)
    grades = [scale.grade(score) for score in sorted(scores)]
    assert grades == sorted(grades) and all(0 <= grade <= 100 for grade in grades)
    assert [grade > 0 for grade in grades] == [score > 0 for score in sorted(scores)]


def test_the_grades_of_a_dataset_are_told_where_there_are_any() -> None:
    plain = make_question()
    assert grades_text([plain]) == "" and grades_text([]) == ""
    graded = make_question("q2", evidence=(make_evidence(2, grade=3),), not_relevant=(Evidence("a.txt", grade=0),))
    assert grades_text([plain, graded]) == ("grade 3: 1, grade 1: 1, grade 0 (judged not relevant, so no evidence): 1")
    assert GradeScale().note == ""
