import pytest

from rag_lab.config import PipelineConfig
from rag_lab.evaluation.registry import cutoff
from rag_lab.evaluation.shallow import comparable, ranks_seen, shallow, shallow_told

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
        "what would stand below counts as not found, in all variants alike, so that they are compared."
    )
    assert found.mark == "rankings hold 10"


def test_the_variants_are_named_where_they_differ() -> None:
    found = shallow(["retrieval.recall@100", "retrieval.ndcg@5"], {"a": TEN, "b": FOUR, "c": FOUR})
    both, some = found["retrieval.recall@100"], found["retrieval.ndcg@5"]
    assert "at most 4 (2 x rerank.final_k) in b and c; 10 (2 x rerank.final_k) in a: what" in str(both)
    assert "5 ranks, but a ranking holds at most 4 (2 x rerank.final_k) in b and c: what" in str(some)
    assert (both.mark, some.mark) == ("some rankings hold 4 to 10", "some rankings hold 4")
    assert str(both).endswith("Variants of which it sees different numbers of ranks are not compared in it.")


def test_rankings_that_two_settings_cut_at_one_depth_are_compared() -> None:
    by_search = TEN.override({"retrieval.base_k": 10, "query.hyde": "none", "rerank.final_k": 50})
    (found,) = shallow(["retrieval.recall@100"], {"a": TEN, "b": by_search}).values()
    assert found.alike and found.mark == "rankings hold 10"
    assert "at most 10 (2 x rerank.final_k) in a; 10 (retrieval.base_k) in b: what" in str(found)


def test_variants_are_compared_where_the_metric_sees_as_many_ranks_of_both() -> None:
    assert [ranks_seen(f"retrieval.recall@{k}", FOUR) for k in (3, 4, 100)] == [3, 4, 4]
    assert ranks_seen("answer.words", FOUR) is None
    assert comparable("retrieval.recall@4", TEN, FOUR) and not comparable("retrieval.recall@5", TEN, FOUR)
    assert comparable("answer.words", TEN, FOUR)


def test_metrics_of_which_the_same_is_true_are_told_in_one_sentence() -> None:
    found = shallow(["retrieval.ndcg@5", "retrieval.mrr@5", "retrieval.recall@100"], {"a": TEN, "b": FOUR})
    one, other = shallow_told(found.values())
    assert one.startswith(
        "Metrics retrieval.ndcg@5 and retrieval.mrr@5 look at 5 ranks, but a ranking holds at most 4 "
    )
    assert other == str(found["retrieval.recall@100"])
