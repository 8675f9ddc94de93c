import re
import subprocess
import sys

import pytest

from rag_lab.errors import ConfigError
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.metric import Tools
from rag_lab.evaluation.registry import (
    build_metric,
    describe,
    metric_names,
    parse_name,
    problems,
    split_names,
)


def test_every_described_metric_can_be_built():
    for info in describe():
        name = info.name
        for placeholder, text in (("@k", "@10"), ("<n>", "800"), ("<stage>", "rerank"), ("<measure>", "RR")):
            name = name.replace(placeholder, text)
        metric = build_metric(name, Tools())
        assert (metric.name, metric.needs, metric.identity()["metric"]) == (name, info.needs, name)


def test_all_problems_are_named_at_once():
    names = [
        "retrieval.ndgc@10", "retrieval.ndcg", "retrieval.ndcg@0", "retrieval.ndcg@5000", "retrieval.ndcg@ten",
        "answer.token_f1@5", "ragas.faithfulness", "citations.recall", "citations.recall", "cost.seconds.",
    ]  # fmt: skip
    found = problems(names, has_judge=False)
    assert len(found) == 9
    parts = (
        "did you mean 'retrieval.ndcg@k'", "'retrieval.ndcg' needs a cut-off from 1 to 1000 and none is given",
        "impossible cut-off", "'answer.token_f1@5' takes no cut-off", "'ragas.faithfulness' needs a judge",
        "'citations.recall' is named 2 times",
    )  # fmt: skip
    assert [part for part in parts if part not in "\n".join(found)] == []
    assert problems(["retrieval.ndcg@10", "ragas.faithfulness", "cost.seconds.rerank"], has_judge=True) == []


def test_evaluate_refuses_with_every_problem():
    with pytest.raises(ConfigError, match="needs a judge.*needs an embedding model"):
        evaluate([], ["ragas.faithfulness", "ragas.semantic_similarity"])


@pytest.mark.parametrize(
    ("measure", "said"),
    [
        ("nDGC@10", "Unknown measure of ir_measures 'nDGC'.* did you mean 'nDCG'?"),
        ("P", "write retrieval.P@10, for instance"),
        ("P@0", "impossible cut-off"),
        ("P@2.5", "write retrieval.P@10"),
        ("AP(rel='high')", "rel='high'"),
        ("AP(relevance=1)", "relevance"),
        ("AP(rel=1))", "must be in format"),
        ("nDCG@__import__", "must be"),
        ("RBP(p=0.8)", "nothing computes this measure with these parameters; give rel too"),
        ("ERR", "give cutoff too"),
        ("nDCG(judged_only=True, dcg='exp-log2')@5", "leave some out"),
        ("IPrec@5", "write retrieval.IPrec@0.5"),
        ("alpha_nDCG@10", "labels of a question's aspects"),
    ],
)
def test_a_measure_that_cannot_be_computed_is_said_before_anything_runs(measure, said):
    (found,) = problems([f"retrieval.{measure}"], has_judge=False)
    assert re.search(said, found)
    assert "\n" not in found


def test_a_measure_without_its_package_says_what_to_install():
    import ir_measures

    if ir_measures.cwl_eval.is_available():
        pytest.skip("the package is installed")
    (found,) = problems(["retrieval.RBP(p=0.8, rel=1)"], has_judge=False)
    assert "pip install ir-measures[cwl_eval]" in found


def test_commas_in_parentheses_belong_to_a_name():
    text = " retrieval.SetF(beta=2.0, rel=1),answer.words,, retrieval.mrr@5 "
    assert split_names(text) == ("retrieval.SetF(beta=2.0, rel=1)", "answer.words", "retrieval.mrr@5")


def test_the_cutoff_and_the_stage_are_arguments():
    assert parse_name("retrieval.ndcg@7").argument == "7"
    assert parse_name("cost.seconds.retrieve_hyde").argument == "retrieve_hyde"
    assert parse_name("retrieval.SetF(beta=2.0)").argument == "SetF(beta=2.0)"


def test_checking_names_loads_no_heavy_library():
    code = (
        "import sys; from rag_lab.evaluation.registry import describe, problems;"
        "describe(); problems(['ragas.faithfulness'], has_judge=True);"
        "print([m for m in ('ragas', 'torch', 'pandas', 'ir_measures', 'langchain_core') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_names_are_sorted_and_unique():
    assert sorted(info.name for info in describe()) == metric_names() == sorted(set(metric_names()))
