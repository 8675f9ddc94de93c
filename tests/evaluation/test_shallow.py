import pytest

from rag_lab.config import PipelineConfig
from rag_lab.evaluation.registry import cutoff
from rag_lab.evaluation.shallow import shallow

TEN, FOUR = PipelineConfig(), PipelineConfig().override({"rerank.final_k": 2})


@pytest.mark.parametrize(
    ("name", "k"),
    [
        ("retrieval.ndcg@10", 10),
        ("retrieval.nDCG(dcg='exp-log2')@20", 20),
        ("retrieval.Rprec", None),
        ("retrieval.IPrec@0.5", None),
        ("citations.precision", None),
        ("retrieval.of_another_version@7", None),
    ],
)
def test_a_metric_has_the_cut_off_of_its_name(name: str, k: int | None) -> None:
    assert cutoff(name) == k


def test_a_cut_off_beyond_every_ranking_names_depth_and_setting() -> None:
    (found,) = shallow(["retrieval.recall@100", "retrieval.recall@10", "answer.words"], {"a": TEN, "b": TEN}).values()
    assert str(found) == (
        "Metric retrieval.recall@100 looks at 100 ranks, but a ranking holds at most 10 (2 x rerank.final_k): "
        "what would stand below counts as not found."
    )
    assert found.mark == "rankings hold 10"


def test_the_variants_are_named_where_they_differ() -> None:
    found = shallow(["retrieval.recall@100", "retrieval.ndcg@5"], {"a": TEN, "b": FOUR, "c": FOUR})
    both, some = found["retrieval.recall@100"], found["retrieval.ndcg@5"]
    assert "at most 4 (2 x rerank.final_k) in b and c; 10 (2 x rerank.final_k) in a: what" in str(both)
    assert "5 ranks, but a ranking holds at most 4 (2 x rerank.final_k) in b and c: what" in str(some)
    assert (both.mark, some.mark) == ("some rankings hold 4 to 10", "some rankings hold 4")
