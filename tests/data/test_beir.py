import json
import os
from pathlib import Path
from typing import Any

import pytest

from rag_lab.data.formats import import_dataset
from rag_lab.data.importers import read_beir
from rag_lab.errors import DatasetError
from rag_lab.records import Evidence, Question

REAL = Path(os.environ.get("RAG_LAB_DATA") or Path(__file__).parents[3] / "shared" / "data")
DOCUMENTS = [{"_id": "d1", "title": "One", "text": "First."}, {"_id": "d2", "text": "Second."}]
QUERIES = [{"_id": "q1", "text": "Which?", "metadata": {"answers": ["one", " "]}}, {"_id": "q2", "text": "Unjudged"}]


def write(folder: Path, qrels: str, documents: list[Any] = DOCUMENTS, queries: list[Any] = QUERIES) -> Path:
    (folder / "qrels").mkdir(parents=True)
    for name, lines in (("corpus", documents), ("queries", queries)):
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        (folder / f"{name}.jsonl").write_text("\n".join(texts), encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + qrels, encoding="utf-8")
    return folder


def test_judged_queries_become_questions(tmp_path: Path) -> None:
    draft = read_beir(write(tmp_path, "q1\td2\t2\nq1\td1\t0\n"))
    evidence, not_relevant = (Evidence("d2.txt", grade=2),), (Evidence("d1.txt", grade=0),)
    assert draft.questions == [Question("q1", "Which?", ("one",), evidence=evidence, not_relevant=not_relevant)]
    assert draft.documents == {"d1.txt": "One\nFirst.", "d2.txt": "Second."}
    assert draft.problems == []


@pytest.mark.parametrize(
    ("qrels", "reason"),
    [
        ("q1\td1\t1\nq1 d2 1\n", "test.tsv:3: not query-id, corpus-id and score"),
        ("q1\td1\t1\nq1\td2\tyes\n", "test.tsv:3: not query-id, corpus-id and score"),
        ("q1\td1\t1\nq1\td2\tnan\n", "test.tsv:3: not query-id, corpus-id and score, a number, by tabs, nor TREC's"),
        ("q1\td1\t1\nq1\td2\tinf\n", "test.tsv:3: not query-id, corpus-id and score, a number"),
        ("q1\td1\t1\nq1\td9\t1\n", "test.tsv:3: the document is not in corpus.jsonl"),
        ("q1\td1\t1\nq9\td1\t1\n", "query 'q9' was left out: it is not in queries.jsonl"),
        ("q1\td1\t1\nq2\td1\t0\n", "query 'q2' was left out: no document is judged relevant"),
    ],
)
def test_a_bad_judgement_is_reported(tmp_path: Path, qrels: str, reason: str) -> None:
    draft = read_beir(write(tmp_path, qrels))
    assert [(question.question_id, len(question.evidence)) for question in draft.questions] == [("q1", 1)]
    assert len(draft.problems) == 1
    assert reason in str(draft.problems[0])


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("{", "corpus.jsonl:3: this is not JSON"),
        ({"_id": "d3"}, "corpus.jsonl:3: text: field required"),
        (DOCUMENTS[0], "corpus.jsonl:3: the id 'd1' was used before"),
        ({"_id": "d3", "text": " "}, "document 'd3' is empty"),
        ({"_id": "d3", "text": "\u200b", "title": None}, "document 'd3' is empty"),
        ({"_id": " ", "text": "Third."}, "corpus.jsonl:3: the id ' ' is empty"),
    ],
)
def test_a_bad_document_is_reported(tmp_path: Path, document: Any, reason: str) -> None:
    draft = read_beir(write(tmp_path, "q1\td1\t1\n", documents=[*DOCUMENTS, document]))
    assert len(draft.documents) == 2
    assert len(draft.problems) == 1
    assert reason in str(draft.problems[0])


def test_a_blank_id_of_a_query_is_reported(tmp_path: Path) -> None:
    draft = read_beir(write(tmp_path, "q1\td1\t1\n \td1\t1\n", queries=[*QUERIES, {"_id": " ", "text": "Lost?"}]))
    assert [question.question_id for question in draft.questions] == ["q1"]
    assert ["the id ' ' is empty" in str(problem) for problem in draft.problems] == [True, False]
    assert "query ' ' was left out: it is not in queries.jsonl" in str(draft.problems[1])


def test_what_is_null_is_absent_and_a_half_counts(tmp_path: Path) -> None:
    queries = [
        {"_id": "q1", "text": "Which?", "metadata": None},
        {"_id": "q2", "text": "Who?", "metadata": {"answers": None}},
    ]
    documents = [{"_id": "d1", "title": None, "text": "First."}, {"_id": "d2", "title": "Two", "text": "  indented"}]
    draft = read_beir(write(tmp_path, "q1\td1\t0.5\nq2\td2\t1\n", documents=documents, queries=queries))
    assert draft.documents == {"d1.txt": "First.", "d2.txt": "Two\n  indented"}
    assert [(question.answers, len(question.evidence)) for question in draft.questions] == [((), 1), ((), 1)]


def test_halves_keep_their_ratio_and_it_is_said(tmp_path: Path) -> None:
    draft = read_beir(write(tmp_path, "q1\td1\t0.5\nq1\td2\t1\n"))
    assert [item.grade for item in draft.questions[0].evidence] == [1, 2]
    (said,) = draft.problems
    assert "test.tsv: judgements were multiplied by 2, since grades are whole numbers up to 100; nDCG stays" in str(
        said
    )


def test_qrels_of_trec_are_read_with_their_grades(tmp_path: Path) -> None:
    folder = write(tmp_path, "")
    (folder / "qrels/test.tsv").unlink()
    (folder / "qrels/test.txt").write_text("q1 0 d1 2\nq1 0 d2 -1\nq1\t0\td9\t1\nq1 d1 2\n")
    draft = read_beir(folder)
    (question,) = draft.questions
    assert (question.evidence, question.not_relevant) == (
        (Evidence("d1.txt", grade=2),),
        (Evidence("d2.txt", grade=0),),
    )
    assert [problem.line for problem in draft.problems] == [4, 3]


def test_ids_that_share_a_file_name_stay_apart(tmp_path: Path) -> None:
    documents = [{"_id": name, "text": name} for name in ("a/b", "a_b", 7)]
    draft = read_beir(write(tmp_path, "q1\ta_b\t1\nq1\t7\t1\n", documents=documents))
    assert draft.documents == {"a_b.txt": "a/b", "a_b_2.txt": "a_b", "7.txt": "7"}
    assert draft.questions[0].evidence == (Evidence("a_b_2.txt"), Evidence("7.txt"))


def test_unknown_split_and_missing_files(tmp_path: Path) -> None:
    folder = write(tmp_path / "set", "q1\td1\t1\n")
    with pytest.raises(DatasetError, match="Unknown split 'dev': allowed are test"):
        read_beir(folder, split="dev")
    (folder / "corpus.jsonl").unlink()
    with pytest.raises(DatasetError, match=r"Cannot read .*corpus.jsonl: No such file"):
        read_beir(folder)
    with pytest.raises(DatasetError, match="is no BEIR folder"):
        read_beir(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not REAL.is_dir(), reason=f"there is no folder of question sets at {REAL}")
@pytest.mark.parametrize(
    ("name", "n_questions", "n_documents", "n_evidence"),
    [("scifact", 300, 5183, 339), ("multihop/hotpotqa_100", 100, 994, 200), ("multihop/musique_100", 100, 1890, None)],
)
def test_real_sets(tmp_path: Path, name: str, n_questions: int, n_documents: int, n_evidence: int | None) -> None:
    dataset, problems = import_dataset(None, REAL / name, tmp_path / "new")
    assert problems == [] and dataset.problems == ()
    assert len(dataset.questions) == n_questions
    assert len(list(dataset.corpus_dir.iterdir())) == n_documents
    found = [len(question.evidence) for question in dataset.questions]
    assert sum(found) == (n_evidence or sum(found))
    assert min(found) >= (1 if name == "scifact" else 2)
