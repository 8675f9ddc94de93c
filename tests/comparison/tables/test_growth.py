"""Curves of pipelines as distractors join the corpus."""

from dataclasses import replace

import numpy as np
from synthetic_run import MAIN, write_run

from rag_lab.comparison.tables.studies import growth_found
from rag_lab.config import PipelineConfig
from rag_lab.report.sections import named_tables, sections
from rag_lab.report.shown_comparison import compare

BASE = PipelineConfig().override({"corpus.distractors_from": "others", "retrieval.mode": "bm25"})
SIZES = (0, 500, 5000)
PLANS = {
    f"{mode}-{size}": {"retrieval.mode": mode, "corpus.distractors": size}
    for mode in ("bm25", "tfidf")
    for size in SIZES
}


def grown(folder, falls, plans=PLANS):
    """A run whose pipelines lose so much at each size."""
    random = np.random.default_rng(0)
    easy = random.uniform(0.5, 0.7, 60)
    values = {}
    for name in plans:
        mode, size = name.split("-")
        values[name] = easy - falls[mode][SIZES.index(int(size))] + random.normal(0, 0.02, 60)
    return compare(write_run(folder, plans, {MAIN: values}, base=BASE).path)


def test_a_winner_that_changes_is_named_with_the_difference_at_the_largest_corpus(tmp_path):
    found = grown(tmp_path / "run", {"bm25": (0, 0.2, 0.4), "tfidf": (0.1, 0.15, 0.2)}).growth
    assert found.sizes == SIZES
    assert list(found.curves) == ["retrieval.mode=bm25", "retrieval.mode=tfidf"]
    assert list(found.curves["retrieval.mode=tfidf"].values()) == ["tfidf-0", "tfidf-500", "tfidf-5000"]
    (sentence,) = found.sentences
    assert "changes as the corpus grows: retrieval.mode=bm25 with 0, retrieval.mode=tfidf with 5,000" in sentence
    assert "differ by +0.2" in sentence and "(60 questions)" in sentence


def test_a_winner_that_stays_is_one_sentence(tmp_path):
    (sentence,) = grown(tmp_path / "run", {"bm25": (0, 0.1, 0.2), "tfidf": (0.1, 0.2, 0.3)}).growth.sentences
    assert sentence.startswith("retrieval.mode=bm25 is the best in retrieval.ndcg@5 with 0 and with 5,000 distractors")


def test_the_report_has_the_curve_and_what_it_costs(tmp_path):
    comparison = grown(tmp_path / "run", {"bm25": (0, 0.1, 0.2), "tfidf": (0.1, 0.2, 0.3)})
    assert "growth" in {one.id for one in sections(comparison, "page")}
    (table,) = named_tables(comparison)["growth"]
    assert [row[:2] for row in table.rows][2] == ("retrieval.mode=bm25", "5,000")


def test_a_run_of_one_size_has_no_curve(tmp_path):
    plans = {name: changes for name, changes in PLANS.items() if name.endswith("-0")}
    assert grown(tmp_path / "run", {"bm25": (0,), "tfidf": (0.1,)}, plans).growth is None


def test_what_stands_in_no_configuration_is_no_obstacle(tmp_path):
    comparison = grown(tmp_path / "run", {"bm25": (0, 0.1, 0.2), "tfidf": (0.1, 0.2, 0.3)})
    variants = comparison.run.variants
    with_object = (*variants[:-1], replace(variants[-1], changes={**variants[-1].changes, "rerank": "Mine(keep=3)"}))
    found = growth_found(replace(comparison, run=replace(comparison.run, variants=with_object)))
    assert {name: len(sizes) for name, sizes in found.curves.items()} == {
        "retrieval.mode=bm25": 3,
        "retrieval.mode=tfidf": 2,
    }
