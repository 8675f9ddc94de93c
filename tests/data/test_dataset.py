from __future__ import annotations

import os
from pathlib import Path

import pytest

from rag_lab.data.dataset import Dataset, list_datasets
from rag_lab.errors import DatasetError

REAL = Path(os.environ.get("RAG_LAB_DATA") or Path(__file__).parents[3] / "shared" / "data")


def make(folder: Path, metadata: str = "name: tiny\n", questions: str = '{"id": "q1", "question": "Why?"}\n') -> Path:
    """Write a dataset of one document and return its folder."""
    (folder / "corpus").mkdir(parents=True)
    (folder / "corpus" / "a.txt").write_text("Because.", encoding="utf-8")
    (folder / "dataset.yaml").write_text(metadata, encoding="utf-8")
    (folder / "questions.jsonl").write_text(questions, encoding="utf-8")
    return folder


def test_load_by_path(tmp_path: Path) -> None:
    path = make(tmp_path / "tiny", "name: Tiny\nlicence: MIT\nlanguage: en\npage_base: 0\n")
    dataset = Dataset.load(path)
    assert (dataset.name, dataset.licence, dataset.language, dataset.page_base) == ("Tiny", "MIT", "en", 0)
    assert dataset.corpus_dir == path / "corpus"
    assert Dataset.load(str(path)) == dataset


def test_an_empty_yaml_takes_the_folders_name(tmp_path: Path) -> None:
    dataset = Dataset.load(make(tmp_path / "tiny", ""))
    assert (dataset.name, dataset.page_base) == ("tiny", 1)


def test_names_are_searched_here_then_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "here" / "datasets" / "both", "description: here\n")
    make(tmp_path / "there" / "both", "description: there\n")
    make(tmp_path / "there" / "other", "")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("RAG_LAB_DATASETS", str(tmp_path / "there"))
    assert Dataset.load("both").description == "here"
    assert Dataset.load("other").name == "other"
    names = [name for name, _ in list_datasets()]
    assert names == sorted(names)
    assert {"both", "other"} <= set(names)


def test_an_unknown_name_lists_the_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "plant_dox")
    monkeypatch.setenv("RAG_LAB_DATASETS", str(tmp_path))
    with pytest.raises(DatasetError, match="Unknown dataset 'plant_dx': allowed are .*plant_dox.*did you mean"):
        Dataset.load("plant_dx")


def test_a_folder_without_yaml_is_no_dataset(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="is no dataset: it has no dataset.yaml"):
        Dataset.load(tmp_path)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ("page_bas: 0\n", "Unknown key 'page_bas': .*did you mean 'page_base'"),
        ("page_base: 2\nname: 3\n", "name: must be a valid string, got 3; page_base: must be 0 or 1, got 2"),
        ("- a\n", "must hold a mapping"),
        ("a: [\n", "is not YAML"),
    ],
)
def test_bad_metadata_is_refused(tmp_path: Path, metadata: str, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        Dataset.load(make(tmp_path / "tiny", metadata))


def test_no_usable_question_names_the_first_problem(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no usable question; the first of 2 problems: .*jsonl:1: this is"):
        Dataset.load(make(tmp_path / "tiny", questions="{\n{\n"))
    (tmp_path / "tiny" / "questions.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(DatasetError, match="holds no usable question$"):
        Dataset.load(tmp_path / "tiny")


def test_an_empty_corpus_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "tiny")
    (path / "corpus" / "a.txt").unlink()
    with pytest.raises(DatasetError, match="corpus"):
        Dataset.load(path)


@pytest.mark.parametrize("name", ["dataset.yaml", "questions.jsonl", "corpus/a.txt"])
def test_the_digest_changes_with_every_file(tmp_path: Path, name: str) -> None:
    path = make(tmp_path / "tiny")
    before = Dataset.load(path).digest
    with (path / name).open("a", encoding="utf-8") as file:
        file.write(" \n")
    assert Dataset.load(path).digest != before


def test_the_digest_knows_names_and_not_places(tmp_path: Path) -> None:
    path = make(tmp_path / "one" / "tiny")
    before = Dataset.load(path).digest
    assert Dataset.load(make(tmp_path / "two" / "tiny")).digest == before
    (path / "corpus" / "a.txt").rename(path / "corpus" / "b.txt")
    assert Dataset.load(path).digest != before


def test_a_link_out_of_the_corpus_is_no_evidence(tmp_path: Path) -> None:
    line = '{"id": "q1", "question": "Why?", "evidence": [{"source": "out.txt"}]}\n'
    path = make(tmp_path / "tiny", questions=line)
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    (path / "corpus" / "out.txt").symlink_to(tmp_path / "secret.txt")
    dataset = Dataset.load(path)
    assert dataset.questions[0].evidence == ()
    assert "out.txt" in str(dataset.problems[0])


@pytest.mark.skipif(not REAL.is_dir(), reason=f"there is no folder of question sets at {REAL}")
def test_contoso_hr() -> None:
    dataset = Dataset.load(REAL / "contoso_hr")
    assert (len(dataset.questions), sum(question.answerable for question in dataset.questions)) == (246, 201)
    assert dataset.problems == ()
    first = dataset.questions[0]
    assert (first.question_id, first.evidence[0].source, first.evidence[0].page) == (
        "hr-001",
        "Northwind_Standard_Benefits_Details.pdf",
        7,
    )
