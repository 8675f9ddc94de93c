"""docs/datasets.md names every field that is read, with its default and an example that is taken, and no other."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from rag_lab.corpus import rules
from rag_lab.data import questions_file
from rag_lab.data.dataset import METADATA_FILE, Dataset, Metadata
from rag_lab.data.questions_file import QUESTIONS_FILE

PAGE = (Path(__file__).parents[2] / "docs/datasets.md").read_text(encoding="utf-8")
TABLES = {
    "## dataset.yaml": Metadata,
    "## questions.jsonl": questions_file._QuestionLine,
    "### An item of `evidence`": questions_file._EvidenceLine,
    "### A turn of `history`": questions_file._TurnLine,
    "## attributes.yaml": rules._Rule,
}
EMPTY: dict[str, Any] = {
    "empty": ("", [], {}),
    "none": (None,),
    "everything": (None,),
    "all": (None,),
    "everybody": (None,),
}


def rows(heading: str) -> dict[str, tuple[str, str]]:
    """The default and the example of each field of a table, as the page has them."""
    table = PAGE.split(f"\n{heading}\n")[1].split("\n#")[0]
    found = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \| .+ \| `([^|]+)` \|$", table, re.MULTILINE)
    assert len(found) == table.count("\n| `"), "a row has no default or no example"
    return {name: (default, example) for name, default, example in found}


def fields_of(heading: str) -> dict[str, Any]:
    return {field.alias or name: field for name, field in TABLES[heading].model_fields.items()}


@pytest.mark.parametrize("heading", TABLES)
def test_each_field_stands_in_the_page_with_its_default(heading: str) -> None:
    fields = fields_of(heading)
    assert list(rows(heading)) == list(fields)
    for name, (told, _) in rows(heading).items():
        field = fields[name]
        if told in ("required", "the folder's name"):
            assert field.is_required(), name
        elif told in EMPTY:
            assert not field.is_required() and field.default in EMPTY[told], name
        else:
            assert str(field.default).lower() == told, name


@pytest.mark.parametrize(("heading", "name"), [(heading, name) for heading in TABLES for name in fields_of(heading)])
def test_the_example_of_each_field_is_one_that_is_taken(heading: str, name: str) -> None:
    model: type[BaseModel] = TABLES[heading]
    examples = {field: yaml.safe_load(example) for field, (_, example) in rows(heading).items()}
    needed = {field for field, info in fields_of(heading).items() if info.is_required()} | {name}
    read = model.model_validate({field: examples[field] for field in needed})
    field = next(own for own, info in model.model_fields.items() if (info.alias or own) == name)
    assert getattr(read, field) not in (None, "", [], {}, model.model_fields[field].default)


def test_no_file_of_a_dataset_has_a_field_that_the_page_leaves_out() -> None:
    told = {heading.split()[-1].strip("`") for heading in TABLES}
    assert {METADATA_FILE, QUESTIONS_FILE, rules.ATTRIBUTES_FILE} <= told


def test_the_example_is_a_dataset_without_a_problem(tmp_path: Path) -> None:
    written = dict(re.findall(r"\n`([\w.]+)`:\n\n```\w+\n(.*?)```", PAGE, re.DOTALL))
    assert set(written) == {METADATA_FILE, QUESTIONS_FILE, rules.ATTRIBUTES_FILE}
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus/press.pdf").write_bytes(b"%PDF-1.4")
    for name, text in written.items():
        (tmp_path / name).write_text(text)
    dataset = Dataset.load(tmp_path)
    assert (dataset.name, dataset.language, list(dataset.problems)) == ("presses", "en", [])
    assert [question.question_id for question in dataset.questions] == ["q1", "q2"]
    assert dataset.questions[0].evidence[0].grade == 2
    found = rules.read_attributes(tmp_path / "corpus", ["press.pdf"])
    assert found["press.pdf"].permissions == ("staff",)
