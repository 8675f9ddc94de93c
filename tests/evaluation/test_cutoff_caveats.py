from typing import Any

import pytest
from factories import make_hit, make_question, make_trace

from rag_lab.config import PipelineConfig
from rag_lab.evaluation.cutoff_caveats import (
    ranking_depth,
    ranks_seen,
    shallow,
    shallow_sentences,
    unequal_text,
    unit_of,
)
from rag_lab.evaluation.registry import cutoff
from rag_lab.records import Evidence, Hit, Question, Trace
from rag_lab.stages.rerank import KeepOrder
from rag_lab.stages.retrieval.fusion import Merge
from rag_lab.stages.run_stage import run_stage

TEN, FOUR = PipelineConfig(), PipelineConfig().override({"rerank.final_k": 2})
PAGES = PipelineConfig()
CHILDREN = PAGES.override({"corpus.parents": "none"})
SHORT = PAGES.override({"corpus.parents": "none", "corpus.chunk_size": 200, "corpus.chunk_overlap": 50})


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
    assert ranks_seen("retrieval.recall@4", TEN) == ranks_seen("retrieval.recall@4", FOUR) == 4
    assert (ranks_seen("retrieval.recall@5", TEN), ranks_seen("retrieval.recall@5", FOUR)) == (5, 4)
    assert ranks_seen("answer.words", FOUR) is None


def test_metrics_of_which_the_same_is_true_are_told_in_one_sentence() -> None:
    found = shallow(["retrieval.ndcg@5", "retrieval.mrr@5", "retrieval.recall@100"], {"a": TEN, "b": FOUR})
    one, other = shallow_sentences(found.values())
    assert one.startswith(
        "Metrics retrieval.ndcg@5 and retrieval.mrr@5 look at 5 ranks, but a ranking holds at most 4 "
    )
    assert other == str(found["retrieval.recall@100"])


def hits(prefix: str, n: int) -> tuple[Hit, ...]:
    names = [f"{prefix}{rank}" for rank in range(n)]
    return tuple(Hit(name, f"{name}.0", name, 1, 0, 100, 1.0) for name in names)


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({}, "2 x rerank.final_k"),
        ({"rerank.final_k": 50}, "rerank.input_limit"),
        ({"rerank.final_k": 50, "rerank.input_limit": 100}, "retrieval.base_k"),
        (
            {"rerank.final_k": 50, "rerank.input_limit": 100, "query.hyde": "always"},
            "retrieval.base_k + retrieval.hyde_k",
        ),
    ],
)
def test_it_is_how_many_hits_the_stages_leave(changes: dict[str, Any], setting: str) -> None:
    config = PipelineConfig().override(changes)
    found = hits("hyde", config.retrieval.hyde_k) if config.query.hyde != "none" else ()
    traces = [Trace(Question("q", "?"), base_hits=hits("base", config.retrieval.base_k), hits={"hyde": found})]
    for stage in (Merge(config.rerank.input_limit), KeepOrder(2 * config.rerank.final_k)):
        traces = run_stage(stage, traces)
    assert ranking_depth(config) == (len(traces[0].ranked), setting)


@pytest.mark.parametrize(
    ("changes", "name", "characters"),
    [
        ({}, "pages", None),
        ({"corpus.parents": "section"}, "sections", None),
        ({"corpus.parents": "fixed"}, "parents of 2,400 characters", 2400),
        ({"corpus.parents": "neighbours"}, "3 neighbouring children of 800 characters", 2400),
        ({"corpus.parents": "none"}, "children of 800 characters", 800),
        ({"retrieval.level": "child", "corpus.splitter": "sentences"}, "children of 100 words", None),
        ({"retrieval.level": "document"}, "whole documents", None),
    ],
)
def test_what_a_hit_is(changes, name, characters):
    unit = unit_of(PAGES.override(changes))
    assert (unit.name, unit.characters) == (name, characters)


def test_variants_that_read_different_amounts_are_named_with_the_metric_that_is_fair():
    (said,) = unequal_text(["retrieval.ndcg@5", "answer.words"], {"a": PAGES, "b": CHILDREN, "c": PAGES})
    assert said == (
        "At the same rank the variants read different amounts of text (pages in a and c; children of 800 characters in "
        "b), so retrieval.ndcg@5 compares them by unequal text; retrieval.evidence_recall@800tokens, added to "
        "`metrics`, compares them by equal text."
    )


def test_a_metric_of_the_experiment_that_is_fair_is_the_one_named():
    metrics = ["retrieval.ndcg@5", "retrieval.mrr@5", "retrieval.recall@500tokens"]
    (said,) = unequal_text(metrics, {"a": PAGES, "b": CHILDREN})
    assert "retrieval.ndcg@5 and retrieval.mrr@5 compare them" in said
    assert said.endswith("retrieval.recall@500tokens compares them by equal text.")


def test_what_does_not_change_the_hits_is_no_difference():
    smaller = PAGES.override({"corpus.chunk_size": 400})
    assert unequal_text(["retrieval.ndcg@5"], {"a": PAGES, "b": smaller}) == []
    assert unequal_text(["answer.words", "no.such@5"], {"a": PAGES, "b": CHILDREN}) == []


def test_a_budget_that_rankings_cannot_fill_is_said():
    (said,) = unequal_text(["retrieval.success@800tokens"], {"a": CHILDREN, "b": SHORT})
    assert said.startswith(
        "Metric retrieval.success@800tokens reads 800 tokens, but a ranking holds only about 500 tokens "
        "(10 children of 200 characters) in b: "
    )


def test_after_a_run_the_rankings_that_ended_early_are_counted():
    full = make_trace(ranked=(make_hit(1, 0, 400), make_hit(2, 0, 400)))
    short = make_trace(ranked=(make_hit(1, 0, 400),))
    nothing = make_trace(ranked=())  # found nothing, which is no lack of text
    traces = {"a": [full] * 20, "b": [full, short, short, nothing], "c": [full] * 19 + [short]}
    (said,) = unequal_text(["retrieval.success@200tokens"], {}, traces)
    assert said == (
        "Metric retrieval.success@200tokens reads 200 tokens, but 2 of 3 rankings of b hold less: fewer tokens, or a "
        "larger rerank.final_k, compare them by equal text."
    )
    assert unequal_text(["retrieval.success@100tokens", "retrieval.ndcg@5"], {}, traces) == []


def test_where_labels_name_files_a_rank_is_a_file_whatever_its_text():
    files = make_question(evidence=(Evidence("a.pdf"), Evidence("b.pdf", 2)))
    quotes = make_question(evidence=(Evidence("a.pdf", quote="180 degrees"),))
    variants = {"a": PAGES, "b": CHILDREN}
    assert unequal_text(["retrieval.ndcg@5"], variants, questions=[files]) == []
    assert len(unequal_text(["retrieval.ndcg@5"], variants, questions=[files, quotes])) == 1
