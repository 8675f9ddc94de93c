"""Graded judgements from a BEIR folder into measures and back, and files of the same bytes as one for the labels."""

import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import ranx
from small_dataset import write_dataset

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import open_index
from rag_lab.corpus.found_chunks import locate_all
from rag_lab.data.dataset import Dataset
from rag_lab.data.formats import export_dataset, import_dataset, qrels_of, run_of
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.records import Evidence, Hit, Question, Trace
from rag_lab.stores.config import StoreConfig
from rag_lab.testing import HashEmbedder

QRELS = {"q1": {"a": 2, "b": 1, "c": 0, "d": 3}, "q2": {"b": 1, "d": 0}}
RUN = ["c", "b", "a", "e", "d"]


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    folder = tmp_path / "given"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text("".join(f'{{"_id": "{d}", "text": "What {d} says."}}\n' for d in "abcde"))
    (folder / "queries.jsonl").write_text("".join(f'{{"_id": "{q}", "text": "Why {q}?"}}\n' for q in QRELS))
    lines = [f"{q}\t{d}\t{grade}\n" for q, judged in QRELS.items() for d, grade in judged.items()]
    (folder / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    return folder


def hit(source: str, score: float = 1.0, page: int | None = None) -> Hit:
    return Hit(f"{source}/0", f"{source}/0", source, page, 0, 10, score)


def graded(question: Question) -> dict[str, int]:
    return {item.source.removesuffix(".txt"): item.grade for item in (*question.evidence, *question.not_relevant)}


def score(metric: str, trace: Trace) -> float | None:
    (found,) = evaluate([trace], [metric])
    return found.value


def test_grades_come_in_and_go_out_as_they_were(beir: Path, tmp_path: Path) -> None:
    dataset, problems = import_dataset("beir", beir, tmp_path / "graded")
    assert problems == []
    assert {question.question_id: graded(question) for question in dataset.questions} == QRELS
    assert [item.source for item in dataset.questions[0].not_relevant] == ["c.txt"]
    export_dataset(dataset, "beir", tmp_path / "beir")
    back, _ = import_dataset("beir", tmp_path / "beir", tmp_path / "back")
    judged = {question.question_id: graded(question) for question in back.questions}
    assert {asked: {d[0]: g for d, g in own.items()} for asked, own in judged.items()} == QRELS


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 3, 5])
def test_ndcg_counts_grades_as_other_programs_do(beir: Path, tmp_path: Path, k: int) -> None:
    dataset, _ = import_dataset("beir", beir, tmp_path / "graded")
    question = dataset.questions[0]
    trace = Trace(question, ranked=tuple(hit(f"{name}.txt", -rank) for rank, name in enumerate(RUN)))
    gains = [QRELS["q1"].get(name, 0) / math.log2(rank + 2) for rank, name in enumerate(RUN[:k])]
    ideal = [grade / math.log2(rank + 2) for rank, grade in enumerate([3, 2, 1][:k])]
    assert score(f"retrieval.ndcg@{k}", trace) == pytest.approx(sum(gains) / sum(ideal))
    qrels = {"q1": {name: int(grade) for name, grade in qrels_of([question])["q1"].items()}}
    theirs = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run_of([trace])), f"ndcg@{k}")
    assert score(f"retrieval.ndcg@{k}", trace) == pytest.approx(theirs)
    assert score(f"retrieval.recall@{k}", trace) == pytest.approx(sum(name in "abd" for name in RUN[:k]) / 3)


def test_a_copy_is_found_in_place_of_the_file_that_evidence_names(tmp_path: Path) -> None:
    path = write_dataset(tmp_path)
    text = (path / "corpus/oven.txt").read_bytes()
    (path / "corpus/again.txt").write_bytes(text.replace(b"\n", b"\r\n") + b"\n")  # other bytes, the same text
    dataset = Dataset.load(path)
    index = open_index(
        dataset.corpus_dir, CorpusConfig(), HashEmbedder(), home=tmp_path / "home", store=StoreConfig(name="exact")
    )
    (question,), _ = locate_all(index, [dataset.questions[1]])
    assert question.evidence[0].copies == ("again.txt",)
    ranked = (hit("canteen.txt"), replaced("again.txt"), replaced("oven.txt"))
    trace = Trace(question, ranked=ranked)
    assert score("retrieval.mrr@10", trace) == 0.5
    assert score("retrieval.precision@2", trace) == 0.5
    assert score("retrieval.precision@3", trace) == pytest.approx(1 / 3)
    assert score("retrieval.ndcg@3", trace) == pytest.approx(1 / math.log2(3))
    assert list(run_of([trace])["q2"]) == ["canteen.txt", "oven.txt"]


def replaced(source: str) -> Hit:
    return Hit(f"{source}/0", f"{source}/0", source, None, 0, 500, 1.0)


def test_a_copy_that_the_asker_may_not_see_is_not_named(tmp_path: Path) -> None:
    path = write_dataset(tmp_path)
    (path / "corpus/south").mkdir()
    shutil.copy(path / "corpus/oven.txt", path / "corpus/south/oven.txt")
    (path / "attributes.yaml").write_text(
        "- {files: oven.txt, namespace: north}\n- {files: 'south/*', namespace: south}"
    )
    dataset = Dataset.load(path)
    index: Any = open_index(
        dataset.corpus_dir, CorpusConfig(), HashEmbedder(), home=tmp_path / "home", store=StoreConfig(name="exact")
    )
    asked = Question("q", "?", evidence=(Evidence("oven.txt", quote="Alarm A7 means"),), namespace="north")
    (question,), _ = locate_all(index, [asked])
    assert question.evidence[0].copies == ()
