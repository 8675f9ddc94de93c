import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import yaml
from factories import asked as asked_about
from factories import trace_of
from synthetic_run import GRID, HYDE, MAIN

from rag_lab.comparison.comparison import read_comparison
from rag_lab.comparison.findings.recommendation import recommendation
from rag_lab.comparison.findings.verdict import verdict
from rag_lab.comparison.findings.verdict_sentences import module_rows
from rag_lab.comparison.tables.costs import index_cells, latencies, stage_table
from rag_lab.config import PipelineConfig
from rag_lab.records import StageRecord
from rag_lab.runs.run_folder import RECORD_FILE, write_json
from rag_lab.runs.variant_files import write_traces

BASE = np.linspace(0.2, 0.6, 40)
WOBBLE = 0.01 * (np.arange(40) % 3 - 1)
SECONDS = {"a": 1.0, "b": 1.0, "c": 1.0}


def test_what_is_reliably_better_is_recommended_with_effect_and_price(compared):
    found = recommendation(compared({"a": BASE, "b": BASE + 0.1 + WOBBLE}, seconds={"a": 1.0, "b": 2.9}))
    assert found.variant_id == "b"
    assert found.headline.startswith("Use B (b): it raises retrieval.ndcg@5 by 0.1")
    assert found.headline.endswith(" and costs 1.90 s a question.")
    assert yaml.safe_load(found.yaml)["rerank"]["final_k"] == 6


def test_of_several_that_are_better_the_best_is_recommended_and_what_is_cheaper_is_named(compared):
    values = {"a": BASE, "b": BASE + 0.1 + WOBBLE, "c": BASE + 0.1 + WOBBLE[::-1] + 0.0005}
    found = recommendation(compared(values, seconds={"a": 1.0, "b": 1.2, "c": 3.0}))
    assert found.variant_id == "c"
    told = "Reliably better than the baseline as well: B (b), which saves 1.80 s against it."
    assert found.reasons[0] == told
    assert "`margin: {retrieval.ndcg@5: …}` in the experiment file" in found.reasons[1]


def test_what_takes_many_times_the_price_is_no_advice_until_a_margin_says_that_it_pays(compared):
    values = {"a": BASE, "b": BASE + 0.1 + WOBBLE}
    comparison = compared(values, seconds={"a": 0.3, "b": 33.7})
    found = recommendation(comparison)
    assert found.variant_id is None and not found.yaml
    assert found.headline.startswith("B (b) is better, at 112 times the price: it raises retrieval.ndcg@5 by 0.1")
    assert found.headline.endswith(" and costs 33.4 s a question.")
    assert "says what pays and what may be left out" in found.reasons[0]
    priced = replace(comparison, run=replace(comparison.run, margins={"retrieval.ndcg@5": 0.05}))
    assert recommendation(priced).headline.startswith("Use B (b): it raises")


def test_of_two_that_are_better_the_one_at_many_times_the_price_comes_second(compared):
    values = {"a": BASE, "b": BASE + 0.1 + WOBBLE, "c": BASE + 0.2 + WOBBLE}
    found = recommendation(compared(values, seconds={"a": 1.0, "b": 1.2, "c": 9.0}))
    assert found.variant_id == "b"
    assert found.reasons[0] == "Reliably better than the baseline as well: C (c), at many times the price."


def test_what_looks_better_and_is_no_finding_is_called_that(compared):
    gains = np.where(np.arange(40) < 18, 0.25, np.where(np.arange(40) < 27, -0.1, 0.0))
    comparison = compared({"a": BASE, "b": BASE + gains})
    row = comparison.difference("b", "retrieval.ndcg@5") or {}
    assert row["p_corrected"] < 0.05 and row["low"] < 0 < row["high"]
    found = recommendation(comparison)
    assert found.variant_id is None and not found.yaml
    assert found.headline == ("B (b) looks better in retrieval.ndcg@5 (18 won, 9 lost); 40 questions are too few.")
    assert "but the interval holds zero: 27 of 40 questions differ" in found.reasons[0]
    assert found.reasons[1] == "Until more is known, the baseline stays."


def test_a_secondary_comparison_alone_recommends_nothing(compared):
    values = dict.fromkeys(GRID, BASE) | {"always-query_likelihood": BASE + 0.1 + WOBBLE}
    noise = np.random.default_rng(0).permuted(np.tile(np.linspace(-0.2, 0.2, 40), (2, 1)), axis=1)
    values["none-query_likelihood"], values["always-none"] = BASE + 2 * noise
    found = compared(values, GRID)
    row = found.difference("always-query_likelihood", MAIN) or {}
    assert (row["verdict"], row["family"]) == ("better", "secondary")
    told = recommendation(found)
    assert told.variant_id is None
    assert (
        told.headline
        == "D (always-query_likelihood) looks better in retrieval.ndcg@5 (40 won, 0 lost); 40 questions are too few."
    )
    assert told.reasons[0].endswith(": found by a secondary comparison alone.")


def test_a_level_that_is_better_on_average_and_not_beside_the_baseline_is_no_advice(compared):
    shifts = {"none-none": 0.0, "none-query_likelihood": -0.2, "always-none": -0.05, "always-query_likelihood": -0.01}
    values = {name: BASE + shift + np.roll(WOBBLE, place) for place, (name, shift) in enumerate(shifts.items())}
    found = compared(values, GRID)
    (row,) = [row for row in module_rows(found) if row.factor == HYDE]
    assert row.word == "better"
    assert recommendation(found).variant_id == "none-none"


def test_where_all_others_are_bounds_it_says_so_and_what_is_reached(compared):
    plans = {"a": {}, "floor": {"answer.context": "none"}, "gold": {"answer.context": "gold"}}
    values = {"a": BASE, "floor": BASE - 0.2, "gold": BASE + 0.2}
    found = recommendation(compared(values, plans, "ragas.semantic_similarity"))
    assert found.headline.startswith("Undecided: the other variants are bounds, which show how far answers can get")
    assert "A (a) reaches 50%" in " ".join(found.reasons)


def test_below_the_headline_stand_the_answers_and_where_most_evidence_is_lost(compared):
    ends = {"a": ["used"] * 20 + ["not_found"] * 20, "b": ["used"] * 18 + ["budget"] * 22}
    comparison = compared({"a": BASE, "b": BASE + 0.1 + WOBBLE})
    asked = tuple(comparison.run.questions)
    for name, states in ends.items():
        traces = [trace_of(asked_about(n, 1, None), 0, state) for n, state in enumerate(states)]
        write_traces(comparison.run.variant_dir(name) / "traces.jsonl", traces)
    replace(comparison.run, answered=asked).write_plan()
    found = recommendation(read_comparison(comparison.run.path))
    assert found.variant_id == "b"
    assert (found.answers, found.first, *found.labels) == (
        "they use 18 of 40 labelled pieces of evidence, under the baseline 20.",
        "First, give the context more tokens: `answer.context_tokens` (1200). 22 of 40 labelled pieces of evidence are "
        "lost in the budget.",
    )


def test_the_report_counts_down_to_twenty_labels_with_the_command(compared):
    values = {"a": BASE[:12], "b": BASE[:12] + 0.1}
    comparison = compared(values)
    told = "12 of about 20 questions are labelled. Label more: `rag-lab ask QUESTION --dataset made_up --label`"
    assert recommendation(comparison).labels[-1].startswith(told)
    sampled = replace(comparison, run=replace(comparison.run, left_out={"beyond limits.questions": 200}))
    assert recommendation(sampled).labels == ()  # more are labelled than were asked


@pytest.mark.parametrize("deep", [1, 2])
def test_a_run_of_which_half_cannot_be_compared_says_so_first(compared, deep):
    plans: dict[str, Any] = {name: {"retrieval.base_k": 20 + n} for n, name in enumerate("abcd")}
    plans |= {name: {"rerank.final_k": 10} for name in "cd"[-deep:]}
    values = dict.fromkeys(plans, BASE) | {"b": BASE - 0.3}
    base = PipelineConfig().override({"rerank.final_k": 3})
    headline = recommendation(compared(values, plans, "retrieval.recall@10", base=base)).headline
    first = "2 of 4 variants cannot be compared with the baseline: retrieval.recall@10 sees 6 ranks of one and 10"
    assert headline.startswith(first) == (deep == 2)
    assert "Use the baseline: the one change is not reliably better" in headline or deep == 1


def test_an_interaction_is_named(grid):
    found = recommendation(grid)  # HyDE adds nothing beside the reranker, and costs nothing here
    assert "Reliably better than the baseline as well: B (none-query_likelihood); C" in found.reasons[0]
    pair = "rerank.name and query.hyde" if "rerank.name and" in found.reasons[-1] else "query.hyde and rerank.name"
    assert (
        found.reasons[-1] == f"What each does depends on the other, which averages hide: {pair} (reliable interaction)."
    )


def test_where_nothing_is_better_the_baseline_stays_with_what_is_ruled_out_and_what_could_be_saved(compared):
    comparison = compared({"a": BASE, "b": BASE + 10 * WOBBLE, "c": BASE - 0.2}, seconds={"a": 3.0, "b": 1.1, "c": 0.1})
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


def test_few_questions_decide_nothing(compared):
    base = np.linspace(0.2, 0.6, 11)
    values = {"a": base, "b": base + np.where(np.arange(11) < 4, 0.2, 0.0)}
    plans = {"a": {}, "b": {"rerank.final_k": 3}}
    found = recommendation(compared(values, plans))
    assert found.variant_id is None and not found.yaml
    assert found.headline.startswith("Undecided: with 11 questions only very large differences")


def test_what_has_no_scores_is_named(compared, comparison):
    assert recommendation(comparison).reasons[-1] == "Without scores, and so not compared: D."


def test_a_grid_whose_main_effect_is_reliable_recommends_the_variant_that_has_it(compared):
    random = np.random.default_rng(1)
    noise = {name: random.normal(0, 0.16, 60) for name in GRID}
    gain = {name: 0.06 if "query_likelihood" in name else 0.0 for name in GRID}
    values = {name: 0.4 + gain[name] + noise[name] for name in GRID}
    found = compared(values, GRID)
    assert not any(found.reliable(name, MAIN) for name in GRID)
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
def test_where_nothing_can_be_told_a_sentence_says_why(compared, values, headline):
    found = recommendation(compared(values))
    assert found.variant_id is None
    assert found.headline.startswith(f"Undecided: {headline}")
    assert "nan" not in " ".join([found.headline, *found.reasons]).lower()


def test_a_run_that_measures_costs_alone_says_that_quality_is_open(compared):
    found = recommendation(compared({"a": BASE}, metric="cost.seconds"))
    assert found.headline.startswith("Undecided: no quality metric was asked for")


def test_what_a_question_takes_is_that_of_an_answered_one_with_search_and_answer_apart(compared):
    comparison = compared({"a": BASE, "b": BASE - WOBBLE})
    generated = StageRecord("generate", seconds=4.0, tokens_in=700, tokens_out=50)
    first, *others = comparison.traces["a"]
    traces = {"a": [replace(first, stages=(*first.stages, generated)), *others], "b": comparison.traces["b"]}
    found = recommendation(replace(comparison, stages=stage_table(traces), latency=latencies(traces)))
    assert found.reasons[0] == "It takes 4.10 s (search 0.10 s, answer 4.00 s) and 750 tokens a question."


def test_what_the_index_takes_stands_beside_what_a_question_takes(compared):
    comparison = compared({"a": BASE, "b": BASE + 0.1 + WOBBLE})
    for name, took in {"a": (20, 1.5, 200_000), "b": (660, 64.5, 3_400_000)}.items():
        index = dict(zip(("chunks", "seconds", "bytes"), took, strict=True))
        write_json(comparison.run.variant_dir(name) / RECORD_FILE, {"index": index})
    found = recommendation(comparison)
    assert found.headline.endswith(" and takes about as long and as many tokens a question.")
    told = (
        "Its index takes 660 chunks to embed (1.1 minutes) and 3.4 MB; that of the baseline 20 chunks to embed (0.025 "
        "minutes) and 0.2 MB."
    )
    assert told in found.reasons
    assert told in verdict(comparison)[0]
    assert index_cells(comparison)["b"] == ("660", "1.1", "3.4")
