import json
import shutil
from fractions import Fraction
from pathlib import Path

import pytest
from factories import make_evidence, make_hit, make_question, make_trace
from hypothesis import given
from hypothesis import strategies as st
from small_dataset import write_dataset

from rag_lab.corpus.build_index import files_of_the_same_text
from rag_lab.data.check import check
from rag_lab.data.dataset import Dataset
from rag_lab.data.labels import distinct, grade_scale, grades_text, repeated_evidence
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.records import Evidence
from rag_lab.report.page.report_page import dataset_page

A, AGAIN = Evidence("a.txt", copies=("again.txt",)), Evidence("again.txt", copies=("a.txt",), grade=2)
B = Evidence("b.txt")


def test_files_that_read_the_same_page_by_page_are_one_group() -> None:
    pages = [
        ("a.pdf", 1, "One."), ("a.pdf", 2, "Two."),
        ("b.pdf", 1, "One."), ("b.pdf", 2, "Two."),
        ("c.pdf", 1, "One.Two."), ("d.pdf", 2, "One."), ("d.pdf", 1, "Two."),
    ]  # fmt: skip
    assert files_of_the_same_text(pages) == {"a.pdf": ("a.pdf", "b.pdf"), "b.pdf": ("a.pdf", "b.pdf")}


def test_a_passage_is_kept_once_with_its_highest_grade() -> None:
    assert distinct([A, B, AGAIN]) == (AGAIN, B)
    quoted = [make_evidence(1, 0, 9), make_evidence(1, 0, 9, quote="spelt otherwise"), make_evidence(2, 0, 9)]
    assert distinct(quoted) == (quoted[0], quoted[2])


def test_quotes_that_were_not_found_on_one_page_stay_apart() -> None:
    lost = [make_evidence(1, quote="first"), make_evidence(1, quote="second"), make_evidence(1, quote="first")]
    assert distinct(lost) == tuple(lost[:2])


def test_to_find_a_copy_is_to_find_both_and_to_miss_both_is_to_miss_one() -> None:
    question = make_question(evidence=(A, AGAIN, B))
    names = ("evidence_recall@1", "recall@1", "evidence_recall@25tokens", "recall@25tokens", "success@25tokens")
    for found in ("a.txt", "again.txt", "b.txt"):
        trace = make_trace(question, ranked=(make_hit(None, source=found),))
        values = {name: evaluate([trace], [f"retrieval.{name}"])[0].value for name in names}
        assert values == {**dict.fromkeys(names, 0.5), "success@25tokens": 1}


def test_repeated_evidence_is_named_by_its_places() -> None:
    located = {"q1": [Evidence("a.pdf", 3), Evidence("b.pdf", 3), Evidence("a.pdf", 4)], "q2": [Evidence("a.pdf", 3)]}
    (found,) = repeated_evidence(located, {"a.pdf": ("a.pdf", "b.pdf"), "b.pdf": ("a.pdf", "b.pdf")})
    assert str(found) == "q1: a.pdf, page 3; b.pdf, page 3"


def test_the_check_names_passages_that_are_labelled_twice(tmp_path: Path) -> None:
    evidence = [{"source": "oven.txt"}, {"source": "<i>.txt"}]
    path = write_dataset(tmp_path, extra_questions=[{"id": "twice", "question": "Which alarm?", "evidence": evidence}])
    shutil.copy(path / "corpus/oven.txt", path / "corpus/<i>.txt")
    with (path / "corpus/<i>.txt").open("ab") as file:
        file.write(b" \r\n")  # other bytes, and the same text
    found = check(Dataset.load(path))
    assert "  named twice   twice: oven.txt; <i>.txt: one passage, counted once" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["repeated_evidence"][0]["places"] == ["oven.txt", "<i>.txt"]
    page = dataset_page(found)
    assert "&lt;i&gt;.txt" in page and "<i>" not in page


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
    found, note = grade_scale(scores)
    assert [found[score] for score in scores] == grades
    assert (note == "") == (factor == 1) and (note == "" or f"by {factor}," in note)


def test_what_no_factor_makes_whole_keeps_its_order_and_is_said() -> None:
    for largest in (1000.0, 100.0):
        scores = [0.12345, 0.777, 0.9, largest]
        grades, note = grade_scale(scores)
        assert [grades[score] for score in scores] == [1, 1, 1, 100]
        assert "rounded up" in note


@given(st.lists(st.floats(-5, 1e6, allow_nan=False), max_size=6))
def test_grades_are_whole_in_bounds_in_order_and_relevant_where_the_judgement_is(scores: list[float]) -> None:
    found, _ = grade_scale(scores)
    grades = [found[score] for score in sorted(scores)]
    assert grades == sorted(grades) and all(0 <= grade <= 100 for grade in grades)
    assert [grade > 0 for grade in grades] == [score > 0 for score in sorted(scores)]


def test_the_grades_of_a_dataset_are_told_where_there_are_any() -> None:
    plain = make_question()
    assert grades_text([plain]) == "" and grades_text([]) == ""
    graded = make_question("q2", evidence=(make_evidence(2, grade=3),), not_relevant=(Evidence("a.txt", grade=0),))
    assert grades_text([plain, graded]) == ("grade 3: 1, grade 1: 1, grade 0 (judged not relevant, so no evidence): 1")
