"""Quality is counted as the order of the variants counts it, and has the intervals of the table of scores."""

from dataclasses import replace

import numpy as np
import pytest
from priced_run import priced

from rag_lab.comparison.front.question_quality import quality_intervals, quality_of, question_values
from rag_lab.statistics.summaries import summary


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    """A fails on the first ten of 30 questions, B was not asked the last five."""
    base = np.random.default_rng(0).uniform(0.2, 0.8, 30)
    values = {"a": np.where(np.arange(30) < 10, np.nan, base), "b": base, "c": base}
    found = priced(tmp_path_factory.mktemp("failing") / "run", values, {"a": 1.0, "b": 1.0, "c": 1.0})
    is_there = (found.scores["variant_id"] != "b") | ~found.scores["question_id"].isin([f"q{i}" for i in range(25, 30)])
    scores = found.scores[is_there]
    return replace(found, scores=scores, summary=summary(scores, scales=found.scales))


def test_the_mean_is_that_of_the_order(failing):
    values = question_values(failing, failing.main_metric)
    ranked = failing.ranking.set_index("variant_id")["ranked_by"]
    place_of = {name: place for place, name in enumerate(values.index)}
    found = quality_of(values, place_of, 1).at(np.ones((30, 1)))[:, 0]
    assert found == pytest.approx([ranked[variant] for variant in values.columns])


def test_intervals_are_those_of_the_scores_where_nothing_failed(failing):
    values = question_values(failing, failing.main_metric)
    found = quality_intervals(failing, values, failing.main_metric)
    cell = failing.cell("c", failing.main_metric)
    assert (found["c"].mean, found["c"].low, found["c"].high) == (cell["mean"], cell["low"], cell["high"])
    for variant in "ab":
        assert found[variant].mean == pytest.approx(values[variant].mean())
        assert found[variant].mean < failing.cell(variant, failing.main_metric)["mean"]
        assert found[variant].low < found[variant].mean < found[variant].high and found[variant].n == 30
