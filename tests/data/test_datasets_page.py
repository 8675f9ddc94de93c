"""docs/datasets.md names every field that is read, with its default, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from rag_lab.data import questions_file
from rag_lab.data.metadata import Metadata
from rag_lab.data.questions_file import read_questions

PAGE = (Path(__file__).parents[2] / "docs/datasets.md").read_text(encoding="utf-8")
TABLES = {
    "## dataset.yaml": Metadata,
    "## questions.jsonl": questions_file._QuestionLine,
    "### An item of `evidence`": questions_file._EvidenceLine,
    "### A turn of `history`": questions_file._TurnLine,
}
EMPTY: dict[str, Any] = {"empty": ("", []), "none": (None,), "everything": (None,), "all": (None,)}


@pytest.mark.parametrize("heading", TABLES)
def test_each_field_stands_in_the_page_with_its_default(heading: str) -> None:
    model: type[BaseModel] = TABLES[heading]
    table = PAGE.split(f"\n{heading}\n")[1].split("\n#")[0]
    rows: dict[str, str] = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|", table, re.MULTILINE))
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    assert list(rows) == list(fields)
    for name, told in rows.items():
        field = fields[name]
        if told in ("required", "the folder's name"):
            assert field.is_required(), name
        elif told in EMPTY:
            assert field.default in EMPTY[told], name
        else:
            assert str(field.default).lower() == told, name


def test_the_example_is_read_without_a_problem(tmp_path: Path) -> None:
    (example,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "questions.jsonl").write_text(example)
    questions, problems = read_questions(tmp_path / "questions.jsonl", ["press.pdf"], 1)
    assert problems == []
    assert [question.question_id for question in questions] == ["q1", "q2"]
    assert questions[0].evidence[0].grade == 2
