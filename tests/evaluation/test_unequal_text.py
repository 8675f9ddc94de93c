import pytest
from factories import make_hit, make_question, make_trace

from rag_lab.config import PipelineConfig
from rag_lab.evaluation.unequal_text import unequal_text, unit_of
from rag_lab.records import Evidence

PAGES = PipelineConfig()
CHILDREN = PAGES.override({"corpus.parents": "none"})
SHORT = PAGES.override({"corpus.parents": "none", "corpus.chunk_size": 200, "corpus.chunk_overlap": 50})


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
