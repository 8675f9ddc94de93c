"""An experiment on questions without labels runs, measures what needs none, and asks for answers to be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_dataset import write_dataset

from rag_lab.experiment.plan import plan
from rag_lab.experiment.without_file import METRICS, Asked, usual_metrics


@pytest.fixture
def unlabelled(tmp_path: Path) -> str:
    path = write_dataset(tmp_path)
    (path / "questions.jsonl").write_text('{"id": "a", "question": "When?"}\n{"id": "b", "question": "Who?"}\n')
    return str(path)


def experiment(dataset: str, **more: Any) -> dict[str, Any]:
    return {"name": "x", "question": "?", "dataset": dataset, "factors": {"rerank.final_k": [5, 3]}, **more}


def test_metrics_are_not_demanded(unlabelled: str) -> None:
    for given in ({}, {"metrics": []}):
        made = plan(experiment(unlabelled, **given))
        assert [metric.name for metric in made.metrics] == ["cost.seconds", "cost.tokens"]
        assert made.questions == made.answered == ("a", "b")
        assert made.experiment.metrics == ["cost.seconds", "cost.tokens"]


def test_a_metric_that_applies_to_no_question_is_no_obstacle(unlabelled: str) -> None:
    assert [one.name for one in plan(experiment(unlabelled, metrics=["retrieval.ndcg@10"])).metrics] == [
        "retrieval.ndcg@10"
    ]


def test_labels_decide_what_is_measured(tmp_path: Path) -> None:
    path = write_dataset(tmp_path)
    assert [one.name for one in plan(experiment(str(path))).metrics] == ["retrieval.ndcg@10"]
    (path / "questions.jsonl").write_text('{"id": "a", "question": "When?", "answers": ["at noon"]}\n')
    assert [one.name for one in plan(experiment(str(path))).metrics] == ["answer.token_f1"]


def test_a_sweep_without_a_file_leaves_answers_on(unlabelled: str, tmp_path: Path) -> None:
    assert usual_metrics(unlabelled) == ()
    asked = Asked(unlabelled, factors={"rerank.final_k": [5, 3]}, metrics=())
    assert not asked.leaves_out_answers and "metrics" not in asked.experiment()
    assert usual_metrics(str(write_dataset(tmp_path, "labelled"))) == METRICS
    assert usual_metrics(str(tmp_path / "nowhere")) == METRICS
