from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import yaml

from rag_lab.comparison.advice.recommendation import Recommendation, recommendation
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.read_comparison import read_comparison
from rag_lab.comparison.stage_tables import stage_table
from rag_lab.records import StageRecord
from rag_lab.runs.run_folder import RunFolder

BASE = np.linspace(0.2, 0.6, 40)
WOBBLE = 0.01 * (np.arange(40) % 3 - 1)
SECONDS = {"a": 1.0, "b": 1.0, "c": 1.0}


class Runs:
    """Runs of which scores and seconds are given."""

    def __init__(self, synthetic: ModuleType, folder: Path) -> None:
        self.synthetic, self.folder = synthetic, folder

    def compared(self, values: Mapping[str, Any], seconds: Mapping[str, float] = SECONDS) -> Comparison:
        plans = {name: {"rerank.final_k": 5 + index} for index, name in enumerate(values)}
        run: RunFolder = self.synthetic.write_run(self.folder / "run", plans, {self.synthetic.MAIN: values})
        found = read_comparison(run.path)
        took = found.latency.assign(median_s=[seconds[name] for name in found.latency["variant_id"]])
        return replace(found, latency=took)

    def recommended(self, values: Mapping[str, Any], seconds: Mapping[str, float] = SECONDS) -> Recommendation:
        return recommendation(self.compared(values, seconds))


@pytest.fixture
def runs(synthetic: ModuleType, tmp_path: Path) -> Runs:
    return Runs(synthetic, tmp_path)


def test_what_is_reliably_better_is_recommended_with_effect_and_price(runs: Runs) -> None:
    found = runs.recommended({"a": BASE, "b": BASE + 0.1 + WOBBLE}, {"a": 1.0, "b": 2.9})
    assert found.variant_id == "b"
    assert found.headline.startswith("Use B (b): it raises retrieval.ndcg@5 by 0.1")
    assert found.headline.endswith(" and costs 1.90 s a question.")
    assert yaml.safe_load(found.yaml)["rerank"]["final_k"] == 6


def test_of_several_that_are_better_the_best_is_recommended_and_what_is_cheaper_is_named(runs: Runs) -> None:
    values = {"a": BASE, "b": BASE + 0.1 + WOBBLE, "c": BASE + 0.1 + WOBBLE[::-1] + 0.0005}
    found = runs.recommended(values, {"a": 1.0, "b": 1.2, "c": 9.0})
    assert found.variant_id == "c"
    told = "Reliably better than the baseline as well: B (b), which saves 7.80 s against it."
    assert found.reasons[0] == told
    assert "`margin: {retrieval.ndcg@5: …}` in the experiment file" in found.reasons[1]


def test_an_interaction_is_named(grid: Comparison) -> None:
    found = recommendation(grid)  # HyDE adds nothing beside the reranker, and costs nothing here
    assert "Reliably better than the baseline as well: B (none-query_likelihood); C" in found.reasons[0]
    pair = "rerank.name and query.hyde" if "rerank.name and" in found.reasons[-1] else "query.hyde and rerank.name"
    assert (
        found.reasons[-1] == f"What each does depends on the other, which averages hide: {pair} (reliable interaction)."
    )


def test_where_nothing_is_better_the_baseline_stays_with_what_is_ruled_out_and_what_could_be_saved(runs: Runs) -> None:
    comparison = runs.compared({"a": BASE, "b": BASE + 10 * WOBBLE, "c": BASE - 0.2}, {"a": 3.0, "b": 1.1, "c": 0.1})
    found, row = recommendation(comparison), comparison.difference("b", comparison.main_metric or "")
    assert row is not None and row["low"] < 0 < row["high"]
    assert found.variant_id == "a"
    assert found.headline == "Use the baseline: none of the 2 changes is reliably better in retrieval.ndcg@5."
    told = " ".join(found.reasons)
    assert (
        f"The largest gain that a 95% interval leaves open is +{row['high']:.3f}, of B (b), which saves 1.90 s" in told
    )
    saved = (
        f"B (b) saves 1.90 s a question: by its 95% interval it changes retrieval.ndcg@5 by −{-row['low']:.3f} at worst"
    )
    assert saved in told
    assert "C (c) saves" not in told  # it is reliably worse


def test_few_questions_decide_nothing(synthetic: ModuleType, tmp_path: Path) -> None:
    base = np.linspace(0.2, 0.6, 11)
    values = {"a": base, "b": base + np.where(np.arange(11) < 4, 0.2, 0.0)}
    plans = {"a": {}, "b": {"rerank.final_k": 3}}
    found = recommendation(read_comparison(synthetic.write_run(tmp_path / "run", plans, {synthetic.MAIN: values}).path))
    assert found.variant_id is None and not found.yaml
    assert found.headline.startswith("Undecided: with 11 questions only very large differences")


def test_what_has_no_scores_is_named(comparison: Comparison) -> None:
    assert recommendation(comparison).reasons[-1] == "Without scores, and so not compared: D."


def test_a_grid_whose_main_effect_is_reliable_recommends_the_variant_that_has_it(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    random = np.random.default_rng(1)
    noise = {name: random.normal(0, 0.16, 60) for name in synthetic.GRID}
    gain = {name: 0.06 if "query_likelihood" in name else 0.0 for name in synthetic.GRID}
    values = {name: 0.4 + gain[name] + noise[name] for name in synthetic.GRID}
    found = read_comparison(synthetic.write_run(tmp_path / "grid", synthetic.GRID, {synthetic.MAIN: values}).path)
    assert not any(found.reliable(name, synthetic.MAIN) for name in synthetic.GRID)
    told = recommendation(found)
    assert told.variant_id == "none-query_likelihood"
    assert "over all settings of the other modules, rerank.name = query_likelihood +" in told.headline
    assert "it is not reliably better" in told.reasons[0]


NONE = np.full(40, math.nan)


@pytest.mark.parametrize(
    ("values", "headline"),
    [
        (
            {"a": BASE},
            "there is one variant, so there is nothing to compare; its mean in retrieval.ndcg@5 is 0.400 over",
        ),
        ({"a": NONE, "b": NONE}, "no variant has a score in retrieval.ndcg@5."),
        ({"a": NONE, "b": BASE}, "the baseline has no score in retrieval.ndcg@5, so there is nothing to compare with."),
        ({"a": BASE, "b": NONE}, "only the baseline has scores, so there is nothing to compare; its mean in"),
        ({"a": BASE, "b": BASE}, "every question scores the same in retrieval.ndcg@5 under all variants, so the price"),
        (
            {"a": BASE[:1], "b": BASE[1:2]},
            "no difference in retrieval.ndcg@5 can be told: only one question has a score",
        ),
    ],
)
def test_where_nothing_can_be_told_a_sentence_says_why(runs: Runs, values: Mapping[str, Any], headline: str) -> None:
    found = runs.recommended(values)
    assert found.variant_id is None
    assert found.headline.startswith(f"Undecided: {headline}")
    assert "nan" not in " ".join([found.headline, *found.reasons]).lower()


def test_a_run_that_measures_costs_alone_says_that_quality_is_open(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.write_run(tmp_path / "run", {"a": {}}, {"cost.seconds": {"a": BASE}})
    assert recommendation(read_comparison(run.path)).headline.startswith("Undecided: no quality metric was asked for")


def test_seconds_before_the_answer_are_not_told_as_those_of_an_answer(runs: Runs) -> None:
    comparison = runs.compared({"a": BASE, "b": BASE - WOBBLE})
    generated = StageRecord("generate", seconds=4.0, tokens_in=700, tokens_out=50)
    trace = comparison.traces["a"][0]
    answered = replace(comparison.run, answered=comparison.run.questions[:1])
    traces = {"a": [replace(trace, stages=(generated,))], "b": comparison.traces["b"]}
    found = recommendation(replace(comparison, run=answered, stages=stage_table(traces)))
    assert found.reasons[0] == "It takes 1.00 s a question before the answer, and 750 tokens with the answer."
