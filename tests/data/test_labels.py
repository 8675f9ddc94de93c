"""Labels written by hand are read back as they were meant, and nothing that is there is lost."""

import json
import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from factories import make_evidence, make_hit, make_question, make_trace
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_dataset import write_dataset

from rag_lab.corpus.build_index import files_of_the_same_text
from rag_lab.data.check import check
from rag_lab.data.dataset import Dataset, dataset_of
from rag_lab.data.labels import distinct, grade_scale, grades_text, questions_file, repeated_evidence, write_label
from rag_lab.errors import DatasetError
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.records import Evidence, Question
from rag_lab.report.page.report_page import dataset_page

FISH = Question("q7", "When is there fish?")


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset.load(write_dataset(tmp_path))


def again(dataset: Dataset) -> dict[str, Question]:
    read = Dataset.load(dataset.path)
    assert read.problems == ()
    return {question.question_id: question for question in read.questions}


def test_a_new_question_is_a_line_that_load_reads_back(dataset: Dataset) -> None:
    before = again(dataset)
    write_label(dataset, FISH, answered_by=("canteen.txt", None, "On Fridays there is fish."))
    write_label(dataset, FISH, answer="On Fridays")
    wanted = replace(
        FISH, answers=("On Fridays",), evidence=(Evidence("canteen.txt", None, "On Fridays there is fish."),)
    )
    assert again(dataset) == {**before, "q7": wanted}


def test_the_same_question_twice_is_extended(dataset: Dataset) -> None:
    lines = questions_file(dataset).read_bytes().splitlines()
    told = Question("asked", "what does ALARM A7  of the oven mean?")
    write_label(dataset, told, answered_by=("notes/shift.txt", None, "the burner was reset"))
    write_label(dataset, told, answered_by=("notes/shift.txt", None, "the burner was reset"))
    found = again(dataset)
    assert [one.source for one in found["q2"].evidence] == ["oven.txt", "notes/shift.txt"]
    assert found["q2"].answers == ("The burner is locked out.",)
    now = questions_file(dataset).read_bytes().splitlines()
    assert (now[0], now[2:]) == (lines[0], lines[2:]) and len(now) == len(lines)


def test_a_label_given_again_keeps_its_grade_and_one_of_grade_0_becomes_evidence(dataset: Dataset) -> None:
    graded = [
        {"source": "canteen.txt", "quote": "fish", "grade": 3},
        {"source": "oven.txt", "quote": "Alarm", "grade": 0},
    ]
    line = {"id": "q7", "question": FISH.text, "evidence": graded}
    with questions_file(dataset).open("a") as file:
        file.write(json.dumps(line) + "\n")
    for item in graded:
        write_label(dataset, FISH, answered_by=(str(item["source"]), None, str(item["quote"])))
    assert [(one.source, one.grade) for one in again(dataset)["q7"].evidence] == [("canteen.txt", 3), ("oven.txt", 1)]


def test_pages_are_written_as_the_file_counts_them(dataset: Dataset) -> None:
    meta = dataset.path / "dataset.yaml"
    meta.write_text(meta.read_text().replace("page_base: 1", "page_base: 0"))
    write_label(Dataset.load(dataset.path), FISH, answered_by=("canteen.txt", 3, "fish"))
    assert json.loads(questions_file(dataset).read_bytes().splitlines()[-1])["evidence"][0]["page"] == 2
    assert again(dataset)["q7"].evidence[0].page == 3


def test_a_plain_folder_keeps_its_labels_itself(tmp_path: Path) -> None:
    (tmp_path / "oil.txt").write_text("Change the oil on Mondays.")
    plain = Dataset.load(tmp_path, labelled=False)
    write_label(plain, Question("asked", "When?"), answered_by=("oil.txt", None, "on Mondays"))
    found = Dataset.load(tmp_path)
    assert [(one.question_id, one.text, one.is_labelled) for one in found.questions] == [("q1", "When?", True)]
    assert dataset_of(tmp_path, ["when?"], tmp_path).questions == found.questions


def test_an_id_that_is_taken_is_not_taken_twice(dataset: Dataset) -> None:
    write_label(dataset, Question("q1", "Who cooks?"), answer="Nobody")
    assert again(dataset)["q5"].text == "Who cooks?"


def test_undo_puts_back_what_was_there_to_the_byte(dataset: Dataset) -> None:
    path = questions_file(dataset)
    states = [path.read_bytes()]
    written = []
    for write in (
        lambda: write_label(dataset, FISH, answered_by=("canteen.txt", None, "fish")),
        lambda: write_label(dataset, Question("", "Anything about food on Fridays?"), answer="Fish"),
        lambda: write_label(dataset, FISH, unanswerable=True),
        lambda: write_label(
            dataset,
            Question("", "What does alarm A7 of the oven mean?"),
            not_answered_by=("oven.txt", None, "Alarm A7 means"),
        ),
    ):
        written.append(write())
        states.append(path.read_bytes())
    assert len(set(states)) == 5
    for one, before in zip(reversed(written), reversed(states[:-1]), strict=True):
        one.undo()
        assert path.read_bytes() == before


def test_a_line_that_others_changed_is_not_undone(dataset: Dataset) -> None:
    written = write_label(dataset, FISH, answer="On Fridays")
    write_label(dataset, FISH, answer="Never")
    with pytest.raises(DatasetError, match="changed since"):
        written.undo()
    assert again(dataset)["q7"].answers == ("On Fridays", "Never")


def test_what_has_no_answer_is_labelled_so_and_what_answers_takes_it_back(dataset: Dataset) -> None:
    founder = Question("q4", "Who founded the plant?")
    write_label(dataset, founder, answered_by=("press.md", None, "Press P-1"))
    assert again(dataset)["q4"].answerable
    write_label(dataset, founder, unanswerable=True)
    assert again(dataset)["q4"] == replace(founder, answerable=False)


def test_lines_that_are_no_questions_and_keys_that_nobody_knows_stay(dataset: Dataset) -> None:
    path = questions_file(dataset)
    kept = b'\xef\xbb\xbf{"id": "x", "question": "Torque?", "note": "mine"}\r\n\nnot json\n[]'
    path.write_bytes(kept)
    write_label(dataset, Question("x", "torque?"), answer="85 Nm")
    first, *others = path.read_bytes().split(b"\n")
    assert json.loads(first) == {"id": "x", "question": "Torque?", "note": "mine", "answers": ["85 Nm"]}
    write_label(dataset, FISH, answer="Friday")
    assert path.read_bytes().split(b"\n")[1:4] == others and len(Dataset.load(dataset.path).questions) == 2


def test_who_asks_is_part_of_the_question(dataset: Dataset) -> None:
    secret = replace(FISH, may_see=("staff",), namespace="canteen")
    write_label(dataset, FISH, answer="Friday")
    write_label(dataset, secret, answer="Monday")
    found = [one for one in again(dataset).values() if one.text == FISH.text]
    assert [(one.may_see, one.namespace, one.answers) for one in found] == [
        (None, None, ("Friday",)),
        (("staff",), "canteen", ("Monday",)),
    ]


def test_documents_in_memory_have_no_place_for_labels() -> None:
    from langchain_core.documents import Document

    from rag_lab._kit.home import usable_home

    given_ones = dataset_of([Document(page_content="Oil.")], None, usable_home())
    with pytest.raises(DatasetError, match="put them into a folder"):
        write_label(given_ones, FISH, answer="Friday")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.text(min_size=1).filter(str.strip), st.text(min_size=1)), min_size=1, max_size=4))
def test_whatever_is_written_is_read_back(tmp_path: Path, asked: list[tuple[str, str]]) -> None:
    (tmp_path / "oil.txt").write_text("Oil.")
    (tmp_path / "questions.jsonl").unlink(missing_ok=True)
    plain = Dataset.load(tmp_path, labelled=False)
    asked = [(text, quote) for text, quote in asked if text.isprintable() and quote.isprintable()]
    for text, quote in asked:
        write_label(plain, Question("", text.strip()), answered_by=("oil.txt", None, quote))
    if asked:
        read = Dataset.load(tmp_path)
        assert read.problems == ()
        written = {quote for one in read.questions for quote in (item.quote for item in one.evidence)}
        assert written == {quote for _, quote in asked}


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
