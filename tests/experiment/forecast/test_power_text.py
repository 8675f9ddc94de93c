"""The dry run says what is primary, at which level, and what cannot be concluded however the run ends."""

import pytest
from small_dataset import write_dataset

from rag_lab.experiment.forecast.caveats import declared_sentences
from rag_lab.experiment.forecast.describe import describe
from rag_lab.experiment.plan import plan

BASE = {"query": {"rewrite": "none", "hyde": "none"}, "answer": {"name": "none"}}
MORE = [
    {"id": f"m{n}", "question": f"At how many bar does valve {n} open?", "evidence": [{"source": "press.md"}]}
    for n in range(6)
]


@pytest.fixture
def told(tmp_path):
    def tell(more=MORE, **changes):
        data = {
            "name": "e",
            "question": "q",
            "dataset": str(write_dataset(tmp_path, extra_questions=more)),
            "base": BASE,
            "factors": {"rerank.final_k": [5, 3], "retrieval.mode": ["bm25", "tfidf", "dense"]},
            "metrics": ["retrieval.ndcg@5", "retrieval.mrr@5"],
        }
        return declared_sentences(plan(data | changes, folder=tmp_path))

    return tell


def test_each_variant_against_the_baseline_is_primary_in_the_first_metric(told):
    first, margin = told()
    assert first.startswith("Primary: retrieval.ndcg@5, 3 comparisons with the baseline; all else is secondary.")
    assert "its own 5%" in first
    assert "No margin is declared" in margin and "{retrieval.ndcg@5: 0.05}" in margin


def test_a_grid_and_a_list_declare_other_families(told):
    assert "the main effects and interactions of the grid" in told(design="grid")[0]
    listed = {"factors": {}, "design": "list", "variants": {n: {"rerank.final_k": k} for k, n in enumerate("abc", 3)}}
    assert "3 comparisons, every pair of variants;" in told(**listed)[0]
    assert "1 comparison: c against b;" in told(**listed, pairs=[["c", "b"]])[0]
    assert "2 comparisons with the baseline;" in told(**listed, pairs="baseline")[0]


def test_strictness_and_margins_are_told(told):
    first, margin = told(strict=True, margin={"retrieval.ndcg@5": 0.05, "retrieval.mrr@5": 0.1})
    assert "4% are for what is primary, 1% for the rest" in first
    assert margin.startswith("Margin: 0.05 in retrieval.ndcg@5 and 0.1 in retrieval.mrr@5;")


def test_too_few_questions_are_told_before_the_run(told):
    assert "measured on 1 question alone" in told(limits={"questions": 1})[-1]
    assert "measured on 5 questions alone" in told(limits={"questions": 5})[-1]
    assert len(told(limits={"questions": 6})) == 2
    assert "clusters and single questions alone" in told(clusters="document")[-1]


def test_a_metric_without_a_worst_value_is_told(told, tmp_path):
    (tmp_path / "mine.py").write_text(
        "def hits(trace):\n    return len(trace.ranked)\n\n\nhits.higher_is_better = False\n"
    )
    found = told(metrics=["mine:hits"], margin={"mine:hits": 2})
    assert found[1].startswith("Margin: 2 in hits;")
    assert found[-1].startswith("hits has no worst value")


def test_where_no_metric_is_one_of_quality_nothing_is_primary(told):
    assert told(metrics=["cost.seconds"]) == [
        "Nothing is primary: no metric says which variant is better, so that none will be called better."
    ]
    assert told(factors={}) == ["Primary: retrieval.ndcg@5, of one variant; nothing is compared."]


def test_the_dry_run_says_it(tmp_path):
    data = {"name": "e", "question": "q", "dataset": str(write_dataset(tmp_path)), "base": BASE}
    text = describe(plan(data | {"factors": {"rerank.final_k": [5, 3]}, "metrics": ["retrieval.ndcg@5"]}))
    assert "Primary: retrieval.ndcg@5, 1 comparison with the baseline" in text


def test_a_variant_of_which_the_metric_sees_fewer_ranks_is_not_counted(told):
    first, *_ = told(factors={"rerank.final_k": [5, 2], "retrieval.mode": ["bm25", "dense"]})
    assert "1 comparison with the baseline;" in first
    assert "2 comparisons" in told(factors={"rerank.final_k": [5, 3], "retrieval.mode": ["bm25", "dense"]})[0]


def test_a_grid_of_which_half_cannot_be_compared_says_so_in_the_first_line(tmp_path):
    data = {
        "name": "e",
        "question": "q",
        "dataset": str(write_dataset(tmp_path)),
        "base": BASE,
        "factors": {"rerank.final_k": [5, 3], "retrieval.mode": ["bm25", "tfidf"]},
        "design": "grid",
        "metrics": ["retrieval.recall@10", "retrieval.recall@5"],
    }
    first = describe(plan(data, folder=tmp_path)).splitlines()[0]
    assert first == (
        "2 of 4 variants cannot be compared with the baseline: retrieval.recall@10 sees 6 ranks of one and 10 of the "
        "other."
    )
    data["metrics"] = data["metrics"][::-1]
    assert describe(plan(data, folder=tmp_path)).splitlines()[0] == "e: q"
