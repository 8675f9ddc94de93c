import subprocess
import sys

import pytest

from rag_lab.errors import ConfigError
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.metric import Tools
from rag_lab.evaluation.registry import build_metric, describe, metric_names, parse_name, problems


def test_every_described_metric_can_be_built():
    for info in describe():
        name = info.name.replace("@k", "@10").replace("<stage>", "rerank")
        metric = build_metric(name, Tools())
        assert metric.name == name
        assert metric.needs == info.needs
        assert metric.identity()["metric"] == name


def test_all_problems_are_named_at_once():
    names = [
        "retrieval.ndgc@10",
        "retrieval.ndcg",
        "retrieval.ndcg@0",
        "retrieval.ndcg@5000",
        "retrieval.ndcg@ten",
        "answer.token_f1@5",
        "ragas.faithfulness",
        "citations.recall",
        "citations.recall",
        "cost.seconds.",
    ]
    found = problems(names, has_judge=False)
    assert len(found) == 9
    text = "\n".join(found)
    assert "did you mean 'retrieval.ndcg@k'" in text
    assert "'retrieval.ndcg' needs a cut-off from 1 to 1000 and none is given" in text
    assert "impossible cut-off" in text
    assert "'answer.token_f1@5' takes no cut-off" in text
    assert "'ragas.faithfulness' needs a judge" in text
    assert "'citations.recall' is named 2 times" in text


def test_nothing_is_wrong_with_a_good_list():
    assert problems(["retrieval.ndcg@10", "ragas.faithfulness", "cost.seconds.rerank"], has_judge=True) == []


def test_evaluate_refuses_with_every_problem():
    with pytest.raises(ConfigError, match="needs a judge.*needs an embedding model"):
        evaluate([], ["ragas.faithfulness", "ragas.semantic_similarity"])


def test_the_cutoff_and_the_stage_are_arguments():
    assert parse_name("retrieval.ndcg@7").argument == "7"
    assert parse_name("cost.seconds.retrieve_hyde").argument == "retrieve_hyde"


def test_names_are_sorted_and_unique():
    names = metric_names()
    assert names == sorted(set(names))


def test_checking_names_loads_no_heavy_library():
    code = (
        "import sys; from rag_lab.evaluation.registry import describe, problems;"
        "describe(); problems(['ragas.faithfulness'], has_judge=True);"
        "print([m for m in ('ragas', 'torch', 'pandas', 'ir_measures', 'langchain_core') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
