"""Labels written by hand are read back as they were meant, and nothing that is there is lost."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_dataset import write_dataset

from rag_lab.data.dataset import Dataset, dataset_of
from rag_lab.data.labels import questions_file, write_label
from rag_lab.errors import DatasetError
from rag_lab.records import Evidence, Question

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
