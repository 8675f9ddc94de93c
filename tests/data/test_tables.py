import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rag_lab.data.formats import read_table
from rag_lab.errors import DatasetError
from rag_lab.records import Evidence, Question

ROWS: list[dict[str, Any]] = [
    {"user_input": "Who?", "reference": "She.", "reference_contexts": ["It was she, 'tis said.", "Shared."]},
    {"user_input": "Where?\nThere?", "reference": "Here.", "reference_contexts": ["Shared."]},
]


def save(path: Path, rows: list[dict[str, Any]] = ROWS) -> Path:
    frame = pd.DataFrame(rows)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True, force_ascii=False)
    else:
        frame.to_parquet(path)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_every_format(tmp_path: Path, suffix: str) -> None:
    draft = read_table(save(tmp_path / f"set{suffix}"))
    assert draft.problems == []
    assert draft.documents == {"context_00001.txt": "It was she, 'tis said.", "context_00002.txt": "Shared."}
    assert [(question.text, question.answers) for question in draft.questions] == [
        ("Who?", ("She.",)),
        ("Where?\nThere?", ("Here.",)),
    ]
    assert [[item.source for item in question.evidence] for question in draft.questions] == [
        ["context_00001.txt", "context_00002.txt"],
        ["context_00002.txt"],
    ]


@pytest.mark.parametrize(
    ("cell", "contexts"),
    [
        ('["a", "b"]', ["a", "b"]),
        ("['a', \"b's\"]", ["a", "b's"]),
        ("a plain text", ["a plain text"]),
        ("", []),
        ("[]", []),
    ],
)
def test_lists_in_csv_cells(tmp_path: Path, cell: str, contexts: list[str]) -> None:
    path = tmp_path / "set.csv"
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file).writerows([["user_input", "reference_contexts"], ["?", cell]])
    draft = read_table(path)
    assert list(draft.documents.values()) == contexts
    assert draft.questions[0].answers == ()


@pytest.mark.parametrize(
    "cell", ["[__import__('os').getcwd()]", "[1]", "['a'", "['a' 'b']", "['a'\n 'b']", "[" * 3000, "{'a': 1}["]
)
def test_a_cell_that_is_no_list_of_texts_is_reported_or_text(tmp_path: Path, cell: str) -> None:
    path = save(tmp_path / "set.csv", [*ROWS, {"user_input": "bad", "reference_contexts": cell}])
    draft = read_table(path)
    if cell.startswith("["):
        assert [question.text for question in draft.questions] == ["Who?", "Where?\nThere?"]
        assert str(draft.problems[0]).startswith(f"{path}:5: reference_contexts")
    else:
        assert cell in draft.documents.values()


def test_bad_rows_of_jsonl(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    good = json.dumps(ROWS[0])
    bad = [
        "{",
        "[]",
        '{"user_input": " ", "reference_contexts": []}',
        '{"user_input": ["a", "b"]}',
        '{"reference": "a"}',
    ]
    path.write_text("\n".join([good, *bad, "", good]), encoding="utf-8")
    draft = read_table(path)
    assert [problem.line for problem in draft.problems] == [2, 3, 4, 5, 6]
    assert draft.questions[1] == Question(
        "row_8", "Who?", ("She.",), evidence=(Evidence("context_00001.txt"), Evidence("context_00002.txt"))
    )


def test_a_context_without_text_is_left_out_and_named(tmp_path: Path) -> None:
    path = save(tmp_path / "set.jsonl", [{"user_input": "?", "reference_contexts": ["\u200b", " ", "Text."]}])
    draft = read_table(path)
    assert draft.documents == {"context_00001.txt": "Text."}
    assert draft.questions[0].evidence == (Evidence("context_00001.txt"),)
    assert [str(problem) for problem in draft.problems] == [
        f"{path}:1: a reference context holds no text and was left out."
    ]


def test_a_csv_row_with_too_many_cells_and_a_very_long_cell(tmp_path: Path) -> None:
    path = tmp_path / "set.csv"
    path.write_text(f"user_input,reference_contexts\na,b,c\nlong,{'x' * 200_000}\n", encoding="utf-8")
    limit = csv.field_size_limit()
    draft = read_table(path)
    assert csv.field_size_limit() == limit
    assert str(draft.problems[0]).startswith(f"{path}:2: the row has more cells than the header")
    assert [len(text) for text in draft.documents.values()] == [200_000]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"question,contexts\na,b\n", "has no column user_input and reference_contexts; found: contexts"),
        ("a.csv", b"user_input,reference_contexts\n\xff\xfe,b\n", "is not UTF-8"),
        ("a.csv", b"user_input,reference_contexts\n", "holds no row"),
        ("a.jsonl", b"", "holds no row"),
        ("a.parquet", b"PAR1 not", "is not Parquet"),
        ("a.xlsx", b"", "allowed are .csv, .jsonl, .parquet"),
    ],
)
def test_what_is_no_table(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError, match=message):
        read_table(tmp_path / name)


def test_a_folder_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(DatasetError, match="Cannot read"):
        read_table(tmp_path / "a.csv")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_grades_of_contexts_are_kept(tmp_path: Path, suffix: str) -> None:
    contexts = ["Best.", "Good.", "Not it.", "Good."]
    rows = [{"user_input": "Who?", "reference_contexts": contexts, "reference_grades": [3, 1, 0, 2]}]
    (question,) = read_table(save(tmp_path / f"set{suffix}", rows)).questions
    assert [item.grade for item in question.evidence] == [3, 2]
    assert [item.source for item in question.not_relevant] == ["context_00003.txt"]


@pytest.mark.parametrize(
    ("grades", "reason"),
    [
        ([1], "reference_grades holds 1 grades for 2 contexts, give one each; the row was left out."),
        ([1, 0.5], "reference_grades.1: must be a valid integer"),
        ([1, 101], "reference_grades.1: must be less than or equal to 100"),
    ],
)
def test_grades_that_cannot_be_used_are_said(tmp_path: Path, grades: list[float], reason: str) -> None:
    row = {"user_input": "Who?", "reference_contexts": ["a", "b"], "reference_grades": grades}
    draft = read_table(save(tmp_path / "set.jsonl", [row]))
    assert reason in str(draft.problems[0]) and draft.questions == []
