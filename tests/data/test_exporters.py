from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_dataset import DOCUMENTS, write_dataset

from rag_lab.data.dataset import Dataset
from rag_lab.data.exporters import EXPORTERS, export_dataset
from rag_lab.data.importers import import_dataset
from rag_lab.data.trec import read_qrels, read_topics
from rag_lab.errors import DatasetError


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset.load(write_dataset(tmp_path))


def back(dataset: Dataset, format: str, tmp_path: Path, name: str) -> tuple[Dataset, list[str]]:
    """Export, import again, and return the dataset and what was left out."""
    problems = export_dataset(dataset, format, tmp_path / name)
    return import_dataset(format, tmp_path / name, tmp_path / "back")[0], [problem.reason for problem in problems]


def test_beir_and_back(dataset: Dataset, tmp_path: Path) -> None:
    again, problems = back(dataset, "beir", tmp_path, "beir")
    assert [(q.question_id, q.text, q.answers) for q in again.questions] == [
        (q.question_id, q.text, q.answers) for q in dataset.questions if q.answerable
    ]
    assert "'q4' was left out: it has no evidence" in problems[0] and len(problems) == 1
    texts = [path.read_text() for path in again.corpus_dir.rglob("*.txt")]
    assert len(texts) == len(DOCUMENTS) and any("290 bar" in text for text in texts)


def test_squad_and_back(dataset: Dataset, tmp_path: Path) -> None:
    again, problems = back(dataset, "squad", tmp_path, "squad.json")
    assert [q.question_id for q in again.questions] == ["q1"]  # the other answers are no part of the text as worded
    assert again.questions[0].answers == ("290 bar",) and "290 bar" in (again.questions[0].evidence[0].quote or "")
    assert [reason.split("'")[1] for reason in problems] == ["q2", "q3", "q4"]


def test_table_and_back(dataset: Dataset, tmp_path: Path) -> None:
    again, problems = back(dataset, "table", tmp_path, "table.jsonl")
    assert [(q.text, q.answers) for q in again.questions] == [(q.text, q.answers) for q in dataset.questions]
    assert problems == []


def test_trec(dataset: Dataset, tmp_path: Path) -> None:
    assert export_dataset(dataset, "trec", tmp_path / "trec") == []
    assert read_topics(tmp_path / "trec/topics.txt") == {q.question_id: q.text for q in dataset.questions}
    assert read_qrels(tmp_path / "trec/qrels.txt")["q1"] == {"press.md": 1}
    lines = (tmp_path / "trec/documents.jsonl").read_text().splitlines()
    assert {json.loads(line)["docno"] for line in lines} == set(DOCUMENTS)


def test_trec_and_back(dataset: Dataset, tmp_path: Path) -> None:
    again, problems = back(dataset, "trec", tmp_path, "trec")
    assert problems == []
    assert [(q.question_id, q.text, q.answerable, len(q.evidence)) for q in again.questions] == [
        (q.question_id, q.text, q.answerable, len(q.evidence)) for q in dataset.questions
    ]
    assert "290 bar" in (again.corpus_dir / again.questions[0].evidence[0].source).read_text()


def test_bad_documents_and_judgements_of_trec_are_named(dataset: Dataset, tmp_path: Path) -> None:
    folder = tmp_path / "trec"
    export_dataset(dataset, "trec", folder)
    with (folder / "documents.jsonl").open("a") as file:
        file.write('{"docno": "press.md", "text": "twice"}\n{"docno": "blank", "text": " "}\nno JSON\n')
    with (folder / "qrels.txt").open("a") as file:
        file.write("q1 0 gone.txt 1\nq2 0 canteen.txt 0\n")
    again, problems = import_dataset(None, folder, tmp_path / "back")
    assert len(again.questions) == 4
    said = ["'press.md' was used before", "'blank' has no text", "not JSON", "'gone.txt', relevant to 'q1'"]
    assert all(words in str(problem) for words, problem in zip(said, problems, strict=True))


def test_nothing_is_overwritten_and_the_format_must_be_known(dataset: Dataset, tmp_path: Path) -> None:
    for format in EXPORTERS:
        with pytest.raises(DatasetError, match="never overwritten"):
            export_dataset(dataset, format, tmp_path)
    with pytest.raises(DatasetError, match="Unknown format 'bier'"):
        export_dataset(dataset, "bier", tmp_path / "new")
