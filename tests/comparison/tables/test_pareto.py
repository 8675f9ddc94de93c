"""The fronts of a run: planted ones, one that hangs on a question, and runs that have none."""

import math
from dataclasses import replace

import numpy as np
import pytest
from synthetic_run import certain, priced, uncertain

from rag_lab.comparison.tables.costs import Price
from rag_lab.comparison.tables.pareto import (
    pareto_fronts,
    quality_intervals,
    quality_of,
    question_costs,
    question_values,
)
from rag_lab.statistics.summaries import summary

LOSS = "ragas.noise_sensitivity"  # of which less is better


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return certain(tmp_path_factory.mktemp("certain") / "run")


def test_a_planted_front_is_found_against_each_cost_and_all_together(planted):
    found = planted.front
    assert found.costs == ("seconds", "tokens", "usd") and found.note == "" and found.left_out == {}
    assert [front.costs for front in found.fronts] == [
        ("seconds",),
        ("tokens",),
        ("usd",),
        ("seconds", "tokens", "usd"),
    ]
    for front in found.fronts:
        assert front.members == ("a", "b") and not any(front.moves)
        assert front.shares == {"a": 1.0, "b": 1.0, "c": 0.0}
    assert found.against("seconds") is found.fronts[0] and found.against("usd", "tokens") is None


def test_a_front_that_hangs_on_one_question_says_so(tmp_path):
    found = uncertain(tmp_path / "run").front
    (front,) = found.fronts
    assert front.members == ("b",) and front.moves[0] == {}
    assert front.moves[1] == {"a": pytest.approx(math.exp(-1), abs=0.05)}


def test_costs_that_are_not_noticed_are_no_costs(tmp_path):
    base = np.linspace(0.2, 0.8, 20)
    took = {"a": 0.10, "b": 0.14}, {"a": 1000, "b": 1015}
    found = priced(tmp_path / "run", {"a": base, "b": base + 0.1}, *took).front
    assert found.fronts == () and found.note == "All variants take about the same, so quality alone decides."


def test_of_less_is_better_the_lowest_is_the_best(tmp_path):
    base = np.random.default_rng(0).uniform(0.4, 0.6, 30)
    values = {"a": base, "b": base - 0.3, "c": base + 0.3}
    found = priced(tmp_path / "run", values, {"a": 0.1, "b": 1.0, "c": 2.0}, metric=LOSS)
    assert not found.scales[LOSS].higher_is_better
    assert found.front.against("seconds").members == ("a", "b")
    assert found.front.quality["b"].mean == pytest.approx(values["b"].mean())


def test_failures_buy_no_place_on_the_front(tmp_path):
    """B is better than A on what it answers, and fails on half."""
    base = np.full(40, 0.5)
    half = np.where(np.arange(40) % 2, np.nan, 0.9)
    found = priced(tmp_path / "run", {"a": base, "b": half}, {"a": 0.1, "b": 1.0}).front
    assert found.against("seconds").members == ("a",)


def test_the_order_of_traces_and_variants_does_not_matter(tmp_path):
    random = np.random.default_rng(2)
    values = {name: random.uniform(0.4, 0.6, 40) for name in "abcd"}
    took = {name: random.uniform(0, 1, 40) for name in "abcd"}
    one = priced(tmp_path / "one", values, took)
    other = priced(tmp_path / "other", dict(reversed(values.items())), took, turn=-1)
    for front, turned in zip(one.front.fronts, other.front.fronts, strict=True):
        assert (front.members, front.shares) == (turned.members, turned.shares)


def test_clusters_are_drawn_as_a_whole(tmp_path):
    """The question that B alone answers is drawn with 29 others: what differs is one cluster of ten."""
    found = uncertain(tmp_path / "run")
    clusters = {f"q{index}": f"document {index % 10}" for index in range(60)}
    (front,) = pareto_fronts(replace(found, clusters=clusters), found.prices).fronts
    assert front.moves[1] == {"a": pytest.approx(math.exp(-1), abs=0.05)}
    few = {f"q{index}": f"document {index % 7}" for index in range(60)}
    assert pareto_fronts(replace(found, clusters=few), found.prices).fronts[0].shares == {}
    assert pareto_fronts(replace(found, clusters=few), found.prices).n_units == 7


def test_who_has_no_price_or_no_scores_is_left_out_and_named(planted):
    prices = {variant: price for variant, price in planted.prices.items() if variant != "c"}
    found = pareto_fronts(planted, prices)
    assert found.left_out == {"c": "no traces, so what it takes is not known"} and set(found.quality) == {"a", "b"}
    scores = planted.scores.assign(
        status=planted.scores["status"].where(planted.scores["variant_id"] != "b", "failed"),
        value=planted.scores["value"].where(planted.scores["variant_id"] != "b"),
    )
    summary = planted.summary.assign(scored=planted.summary["scored"].where(planted.summary["variant_id"] != "b", 0))
    found = pareto_fronts(replace(planted, scores=scores, summary=summary), planted.prices)
    assert found.left_out == {"b": "no scores"} and found.against("seconds").members == ("a", "c")


def test_without_a_price_of_the_model_there_is_no_front_of_dollars(planted):
    prices = {variant: Price(price.seconds, price.tokens, None) for variant, price in planted.prices.items()}
    found = pareto_fronts(planted, prices)
    assert found.costs == ("seconds", "tokens") and found.note.startswith("Dollars are left out")


def test_with_few_questions_nothing_is_said_of_resamples(tmp_path):
    found = certain(tmp_path / "run", 9).front
    assert found.against("seconds").members == ("a", "b") and found.n_units == 9
    assert not any(front.shares or any(front.moves) for front in found.fronts)


def test_one_variant_or_no_quality_has_no_front(tmp_path, planted):
    found = priced(tmp_path / "run", {"a": np.linspace(0, 1, 20)}, {"a": 1.0}).front
    assert found.fronts == () and "not two variants" in found.note
    found = pareto_fronts(replace(planted, quality_metrics=()), planted.prices)
    assert found.fronts == () and found.note.startswith("No quality was measured")


def test_under_equal_weights_it_is_the_price(wide):
    variants = list(wide.prices)
    place_of = {name: place for place, name in enumerate(wide.asked)}
    found = question_costs([wide.traces[variant] for variant in variants], place_of)
    ones = np.ones((len(place_of), 1))
    for cost in ("seconds", "tokens", "usd"):
        expected = [getattr(wide.prices[variant], cost) for variant in variants]
        assert found[cost].at(ones)[:, 0] == pytest.approx(expected)
    assert max(found["tokens"].at(ones)[:, 0]) > 0


def test_a_question_that_is_drawn_alone_says_what_it_took(wide):
    variants = list(wide.prices)
    place_of = {name: place for place, name in enumerate(wide.asked)}
    found = question_costs([wide.traces[variant] for variant in variants], place_of)
    for place in (0, 17):
        drawn = np.zeros((len(place_of), 1))
        drawn[place] = 1
        for row, variant in enumerate(variants):
            trace = wide.traces[variant][place]
            assert found["seconds"].at(drawn)[row, 0] == pytest.approx(sum(record.seconds for record in trace.stages))


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
