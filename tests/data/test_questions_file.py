import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.data.questions_file import read_questions, write_questions
from rag_lab.errors import DatasetError
from rag_lab.records import QUERY_CLASSES, Evidence, Question, Turn

SOURCES = {"a.pdf", "sub/b.txt"}
GOOD: dict[str, Any] = {"id": "q1", "question": "Why?", "answers": ["so"], "evidence": [{"source": "a.pdf", "page": 3}]}


def read(tmp_path: Path, *lines: str | bytes | dict[str, Any], page_base: int = 1) -> tuple[list[Question], list[str]]:
    """Return the questions of a file with these lines, and the problems without the file's name."""
    path = tmp_path / "questions.jsonl"
    parts = [json.dumps(line) if isinstance(line, dict) else line for line in lines]
    path.write_bytes(b"\n".join(part.encode() if isinstance(part, str) else part for part in parts))
    questions, problems = read_questions(path, SOURCES, page_base)
    return questions, [str(problem).removeprefix(f"{path}:") for problem in problems]


def test_every_field(tmp_path: Path) -> None:
    line = {
        **GOOD,
        "class": "fuzzy",
        "evidence": [{"source": "sub/b.txt", "quote": "for that"}],
        "history": [{"role": "user", "content": "Hello"}],
        "tags": ["two_hops"],
        "may_see": ["staff", "audit"],
        "namespace": "plant",
    }
    assert read(tmp_path, line) == (
        [
            Question(
                question_id="q1",
                text="Why?",
                answers=("so",),
                query_class="fuzzy",
                evidence=(Evidence("sub/b.txt", None, "for that"),),
                history=(Turn("user", "Hello"),),
                tags=("two_hops",),
                may_see=("staff", "audit"),
                namespace="plant",
            )
        ],
        [],
    )


@pytest.mark.parametrize(("page_base", "page"), [(0, 4), (1, 3)])
def test_pages_count_from_one(tmp_path: Path, page_base: int, page: int) -> None:
    questions, _ = read(tmp_path, GOOD, page_base=page_base)
    assert questions[0].evidence[0].page == page


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id": "q2", ', "this is not JSON"),
        ("[1, 2]", "this is no JSON object"),
        (b'{"id": "q2", "question": "\xff"}', "this is not JSON"),
        ('{"id": "q2", "question": "\\ud800"}', "this is not JSON"),
        ("[" * 5000, "this is not JSON"),
        ({"id": "q2"}, "question: field required"),
        ({**GOOD, "id": 7}, "id: must be a valid string"),
        ({**GOOD, "id": " "}, "the id is empty"),
        ({**GOOD, "id": "q" * 1_000_000}, "the id has 1,000,000 characters, where 250 are the most"),
        ({**GOOD, "id": "q2", "question": " \n"}, "the question is empty"),
        ({**GOOD, "id": "q2", "answers": "so"}, "answers: must be a valid"),
        ({**GOOD, "id": "q2", "answerable": "no"}, "answerable: must be a valid boolean"),
        ({**GOOD, "id": "q2", "evidence": [{"page": 3}]}, "evidence.0.source: field required"),
        (GOOD, "the id 'q1' is line 1's"),
    ],
)
def test_a_bad_line_is_left_out(tmp_path: Path, line: str | bytes | dict[str, Any], reason: str) -> None:
    questions, problems = read(tmp_path, GOOD, "", line, {**GOOD, "id": "last"})
    assert [question.question_id for question in questions] == ["q1", "last"]
    assert len(problems) == 1
    assert problems[0].startswith(f"3: {reason}")
    assert "the line was left out" in problems[0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"class": "specifc"}, "Unknown class 'specifc': allowed are comparative, creative, fuzzy"),
        ({"anwsers": []}, "Unknown key 'anwsers': allowed are answerable, answers, class"),
        ({"evidence": [{"source": "c.pdf"}]}, "the evidence names 'c.pdf', which is no readable file below corpus/"),
        ({"evidence": [{"source": "../a.pdf"}]}, "the evidence '../a.pdf' leaves the corpus folder"),
        ({"evidence": [{"source": "sub/../a.pdf"}]}, "the evidence 'sub/../a.pdf' leaves the corpus folder"),
        ({"evidence": [{"source": "/etc/passwd"}]}, "the evidence '/etc/passwd' leaves the corpus folder"),
        (
            {"evidence": [{"source": "a.pdf", "page": 0}]},
            "the evidence names page 0 of 'a.pdf', but pages count",
        ),
        ({"evidence": [{"source": "a.pdf", "pge": 1}]}, "Unknown key 'pge': allowed are grade, page, quote, source"),
    ],
)
def test_a_bad_part_is_left_out_and_the_question_kept(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    questions, problems = read(tmp_path, {**GOOD, **change})
    assert [question.text for question in questions] == ["Why?"]
    assert questions[0].query_class is None
    assert len(problems) == 1
    assert problems[0].startswith(f"1: {reason}")


def test_one_bad_evidence_leaves_the_others(tmp_path: Path) -> None:
    questions, problems = read(tmp_path, {**GOOD, "evidence": [{"source": "c"}, {"source": "./sub//b.txt"}]})
    assert questions[0].evidence == (Evidence("sub/b.txt"),)
    assert len(problems) == 1


def test_byte_order_mark_carriage_returns_and_line_separators(tmp_path: Path) -> None:
    lines = [b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\r", '{"id": "q2", "question": "a\u2028b"}\r']
    questions, problems = read(tmp_path, *lines)
    assert [question.text for question in questions] == ["Why?", "a\u2028b"]
    assert problems == []


def test_an_answerable_question_may_lack_answers_and_evidence(tmp_path: Path) -> None:
    questions, problems = read(tmp_path, {"id": "q", "question": "?"})
    assert questions == [Question("q", "?")]
    assert problems == []


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="Cannot read .*questions.jsonl: No such file"):
        read_questions(tmp_path / "questions.jsonl", SOURCES, 1)


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
solid = texts.map(str.strip).filter(bool)
items = st.builds(Evidence, st.sampled_from(sorted(SOURCES)), st.none() | st.integers(1, 9), st.none() | texts)
questions = st.builds(
    Question,
    question_id=solid,
    text=solid,
    answers=st.lists(texts, max_size=2).map(tuple),
    answerable=st.booleans(),
    query_class=st.none() | st.sampled_from(QUERY_CLASSES),
    evidence=st.lists(items, max_size=2).map(tuple),
    history=st.lists(st.builds(Turn, st.sampled_from(["user", "assistant"]), texts), max_size=2).map(tuple),
    tags=st.lists(texts, max_size=2).map(tuple),
    may_see=st.none() | st.lists(texts, max_size=2).map(tuple),
    namespace=st.none() | texts.filter(bool),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(questions, max_size=4, unique_by=lambda question: question.question_id))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, written: list[Question]) -> None:
    path = tmp_path_factory.mktemp("questions") / "questions.jsonl"
    write_questions(path, written)
    assert read_questions(path, SOURCES, 1) == (written, [])


def test_a_right_that_is_given_twice_leaves_the_question_out(tmp_path: Path) -> None:
    """JSON keeps the last of two keys: here the one that opens everything."""
    closed = json.dumps({**GOOD, "may_see": ["staff"]})
    questions, problems = read(tmp_path, closed.removesuffix("}") + ', "may_see": null}')
    assert questions == [] and "'may_see' stands twice" in problems[0]


@pytest.mark.parametrize("key", ["may-see", "maysee", "May_See", "may_sea", "namespaces", "name_space", "permissions"])
def test_a_misspelt_right_leaves_the_question_out(tmp_path: Path, key: str) -> None:
    questions, problems = read(tmp_path, {**GOOD, key: ["staff"]})
    assert questions == []
    assert len(problems) == 1
    assert "left out" in problems[0]
