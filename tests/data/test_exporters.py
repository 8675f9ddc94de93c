from __future__ import annotations

import json
from pathlib import Path

import pymupdf
import pytest
from small_dataset import DOCUMENTS, write_dataset

from rag_lab.corpus.folder import load_folder
from rag_lab.data.dataset import Dataset
from rag_lab.data.exporters import EXPORTERS, export_dataset
from rag_lab.data.importers import import_dataset
from rag_lab.data.trec import read_qrels
from rag_lab.data.trec_topics import read_topics
from rag_lab.errors import DatasetError
from rag_lab.records import Question


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset.load(write_dataset(tmp_path))


def back(dataset: Dataset, format: str, tmp_path: Path) -> tuple[Dataset, list[str]]:
    """Export, import again without a problem, and return the dataset and what was lost."""
    name = {"squad": "out.json", "table": "out.jsonl"}.get(format, format)
    problems = export_dataset(dataset, format, tmp_path / name)
    again, faults = import_dataset(format, tmp_path / name, tmp_path / f"{format}_back")
    assert faults == []
    return again, [problem.reason for problem in problems]


def texts(dataset: Dataset, question: Question) -> list[str]:
    """Return the texts of the files of a question's evidence."""
    return sorted((dataset.corpus_dir / item.source).read_text() for item in question.evidence)


def test_beir_and_back(dataset: Dataset, tmp_path: Path) -> None:
    again, problems = back(dataset, "beir", tmp_path)
    answerable = [question for question in dataset.questions if question.answerable]
    assert [(q.question_id, q.text, q.answers) for q in again.questions] == [
        (q.question_id, q.text, q.answers) for q in answerable
    ]
    assert [texts(again, q) for q in again.questions] == [texts(dataset, q) for q in answerable]
    assert len(list(again.corpus_dir.iterdir())) == len(DOCUMENTS)
    assert problems[-1] == "question 'q4' was left out: it is unanswerable, which the format cannot say."


def test_squad_and_back(dataset: Dataset, tmp_path: Path) -> None:
    again, problems = back(dataset, "squad", tmp_path)
    by_id = {question.question_id: question for question in again.questions}
    assert set(by_id) == {"q1", "q4"}  # the other answers are no part of the text as worded
    assert by_id["q1"].answers == ("290 bar",) and "290 bar" in (by_id["q1"].evidence[0].quote or "")
    assert by_id["q4"] == Question("q4", "Who founded the plant?", answerable=False)
    assert [reason for reason in problems if "left out" in reason] == [
        f"question '{name}' was left out: no answer stands in its evidence word for word." for name in ("q2", "q3")
    ]


def test_table_and_back(dataset: Dataset, tmp_path: Path) -> None:
    again, problems = back(dataset, "table", tmp_path)
    answerable = [question for question in dataset.questions if question.answerable]
    assert [(q.text, q.answers) for q in again.questions] == [(q.text, q.answers) for q in answerable]
    assert [texts(again, q) for q in again.questions] == [texts(dataset, q) for q in answerable]
    assert "question 'q4' was left out: it is unanswerable, which the format cannot say." in problems
    assert "1 document of 4 left out: no question that is written needs them." in problems
    assert "`id` of 4 questions was not written: an import calls each by its row." in problems


def test_trec(dataset: Dataset, tmp_path: Path) -> None:
    export_dataset(dataset, "trec", tmp_path / "trec")
    assert read_topics(tmp_path / "trec/topics.txt") == ({q.question_id: q.text for q in dataset.questions}, [])
    assert read_qrels(tmp_path / "trec/qrels.txt")[0]["q1"] == {"press.md": 1}
    lines = (tmp_path / "trec/documents.jsonl").read_text().splitlines()
    assert {json.loads(line)["docno"] for line in lines} == set(DOCUMENTS)


def test_trec_and_back(dataset: Dataset, tmp_path: Path) -> None:
    again, problems = back(dataset, "trec", tmp_path)
    assert [reason.split(" of ")[0] for reason in problems[:3]] == ["`class`", "`evidence.quote`", "`answers`"]
    assert problems[3:] == ["not written: description, licence, language; pass them on beside the file."]
    assert [(q.question_id, q.text, q.answerable, len(q.evidence)) for q in again.questions] == [
        (q.question_id, q.text, q.answerable, len(q.evidence)) for q in dataset.questions
    ]
    assert [texts(again, q) for q in again.questions] == [texts(dataset, q) for q in dataset.questions]


PAGES = ["Page one speaks of whales.", "Page two speaks of mountains.", "Page three speaks of deserts."]
OF_PAGES = [
    ("page", {"page": 1}),
    ("quote", {"quote": "speaks of deserts"}),
    ("file", {}),
    ("misquoted", {"quote": "speaks of rivers"}),
    ("gone", {"page": 9}),
]


@pytest.fixture
def paged(tmp_path: Path) -> Dataset:
    """Return a dataset with evidence in a PDF, of which the last three items tell no page."""
    asked = [
        {"id": name, "question": f"{name}?", "answers": ["x"], "evidence": [{"source": "man ual.pdf", **where}]}
        for name, where in OF_PAGES
    ]
    folder = write_dataset(tmp_path, "paged", asked)
    pdf = pymupdf.open()
    for text in PAGES:
        pdf.new_page().insert_text((72, 72), text)
    pdf.save(folder / "corpus/man ual.pdf")
    return Dataset.load(folder)


@pytest.mark.parametrize("format", ["beir", "trec"])
def test_every_document_that_is_judged_exists(paged: Dataset, format: str, tmp_path: Path) -> None:
    again, problems = back(paged, format, tmp_path)
    by_id = {question.question_id: question for question in again.questions}
    assert texts(again, by_id["page"]) == [PAGES[0]] and texts(again, by_id["quote"]) == [PAGES[2]]
    for name in ("file", "misquoted", "gone"):
        assert name not in by_id
        assert f"question '{name}' was left out: none of its evidence was found." in problems
        assert any(reason.startswith(f"question '{name}' lost its evidence in 'man ual.pdf'") for reason in problems)


def test_titles_are_written_where_readers_put_them(paged: Dataset, tmp_path: Path) -> None:
    (paged.corpus_dir / "one_line.txt").write_text("A single line.")
    (paged.corpus_dir / "titled.txt").write_text("A title\n\n  Indented text.")
    again, _ = back(paged, "beir", tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "beir/corpus.jsonl").read_text().splitlines()]
    assert {row["_id"]: row["title"] for row in rows if row["title"]} == {"titled.txt": "A title"}
    kept = {path.read_text() for path in again.corpus_dir.iterdir()}
    assert kept == {item.text for item in load_folder(paged.corpus_dir).documents}


@pytest.mark.parametrize("format", ["beir", "trec", "squad"])
def test_any_id_comes_back(format: str, tmp_path: Path) -> None:
    ids = ["a\tb", "a b/../c\n", "100%41", "Öl", '"']
    evidence = [{"source": "press.md", "quote": "290 bar"}]
    asked = [{"id": name, "question": f"{name}?", "answers": ["290 bar"], "evidence": evidence} for name in ids]
    again, _ = back(Dataset.load(write_dataset(tmp_path, extra_questions=asked)), format, tmp_path)
    assert set(ids) <= {question.question_id for question in again.questions}


@pytest.mark.parametrize("format", ["squad", "trec"])
def test_evidence_of_an_unanswerable_question_is_lost_and_told(format: str, tmp_path: Path) -> None:
    asked = {"id": "none", "question": "Why?", "answerable": False, "evidence": [{"source": "press.md"}]}
    again, problems = back(Dataset.load(write_dataset(tmp_path, extra_questions=[asked])), format, tmp_path)
    assert Question("none", "Why?", answerable=False) in again.questions
    assert "`evidence or answers` of 1 question was not written: unanswerable ones have none there." in problems


@pytest.mark.parametrize("format", EXPORTERS)
def test_what_a_format_cannot_hold_is_told_and_access_first(format: str, tmp_path: Path) -> None:
    evidence = [{"source": "press.md", "quote": "290 bar"}, {"source": "oven.txt"}]
    asked = {
        "question": "Which?", "answers": ["290 bar", "much"], "evidence": evidence, "may_see": ["staff"],
        "namespace": "", "history": [{"role": "user", "content": "Hi"}], "tags": ["t"],
    }  # fmt: skip
    extra = [{"id": "full", **asked}, {"id": "bare", "question": "Is 1 < 2?"}]
    folder = write_dataset(tmp_path, extra_questions=extra)
    (folder / "attributes.yaml").write_text("- files: notes/**\n  permissions: [staff]\n")
    (folder / "corpus/bad.pdf").write_bytes(b"no PDF")
    _, problems = back(Dataset.load(folder), format, tmp_path)
    assert [reason.split(":")[0] for reason in problems[:6]] == [
        "namespace and permissions of 1 file were not written",
        "`may_see` of 1 question was not written",
        "`namespace` of 1 question was not written",
        "`history` of 1 question was not written",
        "`class` of 3 questions was not written",
        "`tags` of 1 question was not written",
    ]
    own = {
        "beir": "question 'bare' was left out: it has no evidence.",
        "squad": "question 'full' lost 1 answer and the evidence in 1 other document",
        "table": "question 'full' has several answers, of which the first was written.",
        "trec": "`answers` of 4 questions was not written",
    }
    assert any(reason.startswith(own[format]) for reason in problems)
    assert "the PDF is corrupt" in problems[-1]


def test_bad_documents_and_judgements_of_trec_are_named(dataset: Dataset, tmp_path: Path) -> None:
    folder = tmp_path / "trec"
    export_dataset(dataset, "trec", folder)
    with (folder / "documents.jsonl").open("a") as file:
        file.write('{"docno": "press.md", "text": "twice"}\n{"docno": "blank", "text": " "}\nno JSON\n')
    with (folder / "qrels.txt").open("a") as file:
        file.write("q1 0 gone.txt 1\nq2 0 canteen.txt 0\nq2 0 canteen.txt nan\nq9 0 canteen.txt 1\n")
    with (folder / "topics.txt").open("a") as file:
        file.write("<top><num>q5</num><title></title></top>\n")
    again, problems = import_dataset(None, folder, tmp_path / "back")
    assert len(again.questions) == 4
    said = [
        *("'press.md' was used before", "'blank' has no text", "not JSON", "topic 'q5' has no text", "grade, a number"),
        *("'q9' is no usable topic", "'gone.txt', relevant to 'q1'"),
    ]
    assert all(words in str(problem) for words, problem in zip(said, problems, strict=True))


def test_a_topic_whose_judgements_are_bad_is_not_called_unanswerable(dataset: Dataset, tmp_path: Path) -> None:
    folder = tmp_path / "trec"
    export_dataset(dataset, "trec", folder)
    (folder / "qrels.txt").write_text("q1 0 press.md nan\nq2 0 canteen.txt 1\n")
    again, problems = import_dataset(None, folder, tmp_path / "back")
    assert [(question.question_id, question.answerable) for question in again.questions] == [
        *(("q2", True), ("q3", False), ("q4", False))
    ]
    assert ["line was left out" in str(problem) for problem in problems] == [True, False]
    assert "the question 'q1' was left out: its judgements name no document" in problems[1].reason


def test_nothing_is_overwritten_and_the_format_must_be_known(dataset: Dataset, tmp_path: Path) -> None:
    for format in EXPORTERS:
        with pytest.raises(DatasetError, match="never overwritten"):
            export_dataset(dataset, format, tmp_path)
    with pytest.raises(DatasetError, match="Unknown format 'bier'"):
        export_dataset(dataset, "bier", tmp_path / "new")
