from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from synthetic_run import GRID, MAIN

from rag_lab.comparison.comparison import Comparison, read_comparison, with_answers
from rag_lab.comparison.findings.recommendation import recommendation
from rag_lab.comparison.findings.verdict import families_sentence, verdict
from rag_lab.comparison.findings.verdict_sentences import OFF_LEVELS, module_rows
from rag_lab.comparison.tables.costs import Price
from rag_lab.config import PipelineConfig
from rag_lab.report.page.report_page import to_html
from rag_lab.report.score_tables import differences_of
from rag_lab.report.sections import named_tables, verdict_box
from rag_lab.report.study_tables import module_table
from rag_lab.statistics.effects import level_text
from rag_lab.statistics.summaries import Scale

N = 300
BASE = np.linspace(0.3, 0.7, N)
WOBBLE = 0.02 * (np.arange(N) % 5 - 2)
NOISE = np.random.default_rng(5).normal(0, 0.4, N).clip(-0.25, 0.25)
MARGIN = {"retrieval.ndcg@5": 0.05}
SHIFTS = {
    "better": 0.1 + WOBBLE,
    "worse": -0.2 + WOBBLE,
    "slightly": -0.015 + WOBBLE,
    "same": WOBBLE,
    "open": NOISE - NOISE.mean() - 0.025,
}


@pytest.fixture
def made(compared):
    """Compares runs of which shifts from the baseline, seconds, margins and pairs are declared."""

    def build(
        shifts: Mapping[str, Any],
        seconds: Mapping[str, float],
        margins: Mapping[str, float] = MARGIN,
        pairs: tuple[tuple[str, str], ...] = (),
        plans: Mapping[str, Any] | None = None,
        base: PipelineConfig | None = None,
    ) -> Comparison:
        values = {"base": BASE} | {name: BASE + shift for name, shift in shifts.items()}
        declared = {"margins": dict(margins), "pairs": pairs}
        return compared(values, plans, seconds=seconds, declared=declared, base=base)

    return build


def test_each_of_the_five_statements_of_cheaper_variants(made):
    found = made(SHIFTS, {"base": 3.0})
    rows = {row.name: (row.word, row.why) for row in module_rows(found)}
    assert rows["better"] == ("better", "")
    assert rows["worse"] == ("worse", "")
    assert rows["slightly"] == ("worse", "but by less than 0.05")
    assert rows["same"] == ("not worse", "by more than 0.05: it may be used instead")
    assert rows["open"][0] == "cannot tell"
    told = verdict(found)
    assert told[0].startswith("E (same) is not worse than the baseline by more than 0.05 in retrieval.ndcg@5 (one-")
    assert told[0].endswith(": it may be used instead, which saves 2.00 s a question.")
    assert any(
        "D (slightly) lowers retrieval.ndcg@5 by 0.015, but by less than 0.05, against the" in one for one in told
    )
    assert any("F (open)" in one for one in told)


def test_what_a_removal_does_without_may_be_left_out(made):
    base = PipelineConfig().override({"rerank.name": "query_likelihood"})
    plans = {"base": {}, "same": {"rerank.name": "none"}}
    found = made({"same": WOBBLE}, {"base": 2.9}, plans=plans, base=base)
    (row,) = module_rows(found)
    assert (row.word, row.why) == ("not worse", "by more than 0.05: rerank.name=query_likelihood may be left out")
    assert verdict(found)[0].endswith(": rerank.name=query_likelihood may be left out, which saves 1.90 s a question.")
    (left_out,) = dict(verdict_box(found).lines)["Leave out"]
    assert left_out.endswith(", not worse by more than 0.05")


@pytest.mark.parametrize(
    ("shift", "word", "why"),
    [
        (WOBBLE, "not better", "by more than 0.05: it may be left out"),
        (0.02 + WOBBLE, "better", "but by less than 0.05: it may be left out"),
        (0.1 + WOBBLE, "better", ""),
        (-0.02 + WOBBLE, "worse", ""),
    ],
)
def test_of_an_addition_it_is_asked_whether_it_gains_more_than_the_margin(made, shift, word, why):
    found = made({"dearer": shift}, {"dearer": 4.0})
    (row,) = module_rows(found)
    assert (row.word, row.why) == (word, why)


def test_what_saves_nothing_is_not_worse_and_nothing_is_left_out(made):
    found = made({"same": WOBBLE}, {})
    (row,) = module_rows(found)
    assert (row.word, row.why) == ("not worse", "by more than 0.05")
    told = verdict(found)[0]
    assert "; it takes about as long and as many tokens a question." in told and "left out" not in told


def test_which_side_is_to_be_kept_depends_on_the_price_and_never_on_scores(made):
    first = made({"b": WOBBLE, "c": -0.3 + WOBBLE}, {"b": 4.0, "c": 0.2})
    sides = {key: one.is_addition for key, one in first.not_worse.items()}
    turned = made({"b": -0.3 + WOBBLE, "c": WOBBLE}, {"b": 4.0, "c": 0.2})
    assert {key: one.is_addition for key, one in turned.not_worse.items()} == sides
    assert set(sides.values()) == {True, False}
    assert first.not_worse[("retrieval.ndcg@5", "b", "base")].price == Price(-3.0, 0.0, 0.0)


def test_the_cheapest_that_is_not_worse_than_the_best_is_recommended_with_what_that_rests_on(made):
    shifts = {"best": 0.03 + WOBBLE, "cheap": 0.01 + WOBBLE, "cheaper": -0.2 + WOBBLE}
    found = recommendation(made(shifts, {"base": 2.0, "best": 3.0, "cheap": 1.0, "cheaper": 0.1}))
    assert found.variant_id == "cheap" and "final_k: 7" in found.yaml
    assert found.headline == (
        "Use C (cheap): it raises retrieval.ndcg@5 by 0.010 [0.007 to 0.013] and saves 1.00 s a question; it is not "
        "worse than the best variant by more than 0.05; no cheaper one is shown to be so."
    )
    told = " ".join(found.reasons)
    assert (
        "The margin holds against each of the 3 other variants, least clearly B (best) (margin 0.05; one-sided" in told
    )
    assert "Against B (best), which has the best mean, it saves 2.00 s a question." in told
    assert "Against the baseline" not in told  # the headline has it


@pytest.mark.parametrize(
    ("shift", "seconds", "start", "end"),
    [
        (
            0.1,
            {"best": 3.0},
            "it raises retrieval.ndcg@5 by 0.100 [",
            "no cheaper variant is shown to be within 0.05 of it.",
        ),
        (
            0.0,
            {"base": 2.0},
            "it is not worse than the best variant by more than 0.05 in retrieval.ndcg@5; ",
            "no cheaper one is shown to be so.",
        ),
    ],
)
def test_what_is_good_enough_is_not_said_to_gain_and_the_best_not_to_be_near_itself(made, shift, seconds, start, end):
    found = recommendation(made({"best": shift + WOBBLE}, seconds))
    assert found.headline.startswith(f"Use B (best): {start}") and found.headline.endswith(f"; {end}")
    assert ("not worse" in found.headline) == (shift == 0)


@pytest.mark.parametrize(("shift", "chosen"), [(0.01, "like"), (0.0001, "base")])
def test_at_the_same_price_what_is_better_comes_first_and_else_the_reference(made, shift, chosen):
    found = recommendation(made({"like": shift + WOBBLE}, {"base": 1.04, "like": 1.06}))
    assert found.variant_id == chosen and "cheapest" not in found.headline


def test_what_costs_more_and_is_not_better_is_not_recommended_by_its_margin_alone(made):
    shift = NOISE - NOISE.mean() + 0.02
    found = recommendation(made({"dear": shift}, {"dear": 9.0}, margins={"retrieval.ndcg@5": 0.03}))
    assert found.headline.startswith("Use the baseline: the one change is not reliably better")
    told = "B (dear) is shown to be not worse than the best by more than 0.03, but costs more than the baseline"
    assert told in " ".join(found.reasons)


def test_a_gain_below_the_margin_that_costs_more_is_one_verdict_everywhere(made):
    comparison = made({"little": 0.01 + WOBBLE}, {"little": 9.0})
    found, (row,) = recommendation(comparison), module_rows(comparison)
    assert (row.word, row.why) == ("better", "but by less than 0.05: it may be left out")
    assert found.variant_id == "base"
    assert row.why in differences_of(comparison).rows[0][-1]


def test_effects_and_differences_say_what_the_first_table_says(made):
    comparison = made({"dear": WOBBLE}, {"dear": 9.0})
    (row,) = module_rows(comparison)
    assert (row.word, row.why) == ("not better", "by more than 0.05: it may be left out")
    (told,) = comparison.effects.sentences("retrieval.ndcg@5")
    assert told.startswith("rerank.final_k=6 is not better by more than 0.05 (") and "chance" not in told
    assert differences_of(comparison).rows[0][-1] == f"{row.word} {row.why}"
    assert to_html(comparison).count(f"{row.word} {row.why}") == 1


def test_a_margin_that_came_after_the_scores_is_called_post_hoc(made):
    run = made({"same": WOBBLE}, {}, margins={}).run
    late = read_comparison(run.path, margins=MARGIN)
    assert late.not_worse[("retrieval.ndcg@5", "same", "base")].is_found
    assert any("post hoc" in reason for reason in recommendation(late).reasons)
    assert not read_comparison(run.path).not_worse


def test_without_a_margin_one_is_named_and_nothing_is_left_out(made):
    found = made({"same": WOBBLE}, {"base": 2.9}, margins={})
    (row,) = module_rows(found)
    assert row.word == "cannot tell" and row.why.startswith("could have shown 0.0")
    assert "rag-lab report RUN --margin retrieval.ndcg@5=…" in recommendation(found).reasons[-1]
    assert not any("left out, which" in sentence for sentence in verdict(found))


def test_a_metric_that_is_blind_to_a_change_lets_nobody_leave_anything_out(made):
    found = made({"twin": np.zeros(N)}, {"twin": 0.1})
    (row,) = module_rows(found)
    assert (row.word, row.why) == ("no difference", "the metric is blind to it: it reads the ranking")
    assert not found.not_worse and recommendation(found).variant_id is None


def test_failures_of_the_variant_count_against_it(made):
    lost = np.where(np.arange(N) % 10 == 0, np.nan, WOBBLE)
    found = made({"lossy": lost}, {"base": 3.0})
    (one,) = found.not_worse.values()
    assert (one.n, one.n_failed, one.is_found) == (N, N // 10, False)


def test_named_pairs_are_what_the_report_is_about(made):
    shifts = {"dense": -0.2 + WOBBLE, "english": -0.1 + WOBBLE}
    found = made(shifts, {}, pairs=(("english", "dense"),))
    (row,) = module_rows(found)
    assert (row.name, row.against, row.word) == ("english", "B dense", "better")
    told = verdict(found)
    assert told[0].startswith("C (english) raises retrieval.ndcg@5 by 0.100 against B (dense) (95% interval")
    assert not any("against the baseline" in sentence for sentence in told)
    assert recommendation(found).variant_id == "english"
    assert found.difference("dense", "retrieval.ndcg@5") is not None  # it stands in the tables as well
    page = to_html(found)
    assert "The other pairs that the experiment is about" in page and "C english against B dense" in page
    (title,) = [table.title for table in named_tables(found)["differences"]]
    assert "the pairs of the experiment, and against base" in title
    assert "| C english, against B dense | better |" in module_table(found, module_rows(found)).to_markdown()
    (table,) = named_tables(found)["differences"]
    assert [row[table.header.index("family")] for row in table.rows] == ["primary", "secondary", "secondary"]


def test_main_effects_have_the_same_statements(compared):
    random = np.random.default_rng(4)
    gains = {name: 0.1 if "query_likelihood" in name else 0.0 for name in GRID}
    values = {name: BASE + gain + random.normal(0, 0.02, N) for name, gain in gains.items()}
    found = compared(values, GRID, declared={"margins": MARGIN})
    rows = {row.name: (row.word, row.why) for row in module_rows(found)}
    assert rows == {
        "rerank.name = query_likelihood": ("better", ""),
        "query.hyde = always": ("not worse", "by more than 0.05"),
    }
    assert set(found.not_worse) == {
        ("retrieval.ndcg@5", "rerank.name", "query_likelihood"),
        ("retrieval.ndcg@5", "query.hyde", "always"),
    }


@pytest.mark.parametrize("off", ["none", None, False, 0])
def test_a_level_that_turns_something_off_names_what_may_be_left_out(off):
    assert level_text(off) in OFF_LEVELS and level_text(True) not in OFF_LEVELS


def test_of_a_metric_without_a_worst_value_it_is_said_that_no_margin_can_be_tested(made):
    found = made({"same": WOBBLE - 0.5}, {"base": 2.0})  # scores below the range that the metric says it has
    assert not any(one.is_found for one in found.not_worse.values())
    (told,) = [one for one in verdict(found) if one.startswith("What may be left out in retrieval.ndcg@5 cannot be")]
    assert "the metric has no worst or no best value" in told


def test_how_many_questions_the_margin_takes_is_told_of_what_it_does_not_show_yet(made):
    found = made(SHIFTS, {"base": 3.0}, margins={"retrieval.ndcg@5": 0.03})
    (needed,) = [n for key, n in found.questions_for_margin.items() if key[1] == "open"]
    assert needed is not None and needed > N
    told = " ".join(verdict(found)).replace("With", "with")
    assert f"with about {needed:,} questions F would be shown to stay within the margin of 0.03" in told


def test_a_baseline_that_stays_names_the_additions_that_gain_little(made):
    shifts = {"dearer": WOBBLE, "open": SHIFTS["open"]}
    found = recommendation(made(shifts, {"dearer": 4.0}))
    assert found.variant_id == "base"
    if found.headline.startswith("Use the baseline: none"):
        assert "and B (dearer) may be left out: it would not gain more than 0.05." in found.headline


def test_comparisons_that_cannot_be_significant_are_named_once(made):
    few = np.where(np.arange(N) < 4, 0.2, 0.0)
    found = made({"few": few, "more": WOBBLE}, {}, margins={})
    (told,) = [one for one in verdict(found) if "too small to test" in one]
    assert told.startswith("1 of 2 comparisons was too small to test")
    assert families_sentence(found).startswith("Primary: 1 comparison in retrieval.ndcg@5 (the pairs")
    strict = with_answers(replace(found, run=replace(found.run, strict=True)))
    assert "in strict mode the primary family has 4% and the secondary 1%" in families_sentence(strict)


def test_a_difference_whose_interval_holds_zero_is_no_finding(made):
    rare = np.where(np.arange(N) < 9, -0.03, 0.0)
    found = made({"rare": rare}, {}, margins={})
    row = found.difference("rare", "retrieval.ndcg@5") or {}
    assert row["p_corrected"] < 0.05 and row["low"] < 0 < row["high"]
    why = "p = 0.004, but the interval holds zero: 9 of 300 questions differ"
    assert (module_rows(found)[0].word, module_rows(found)[0].why) == ("cannot tell", why)
    assert f"but is no finding: B (rare) −0.001 [−0.011 to +0.009] ({why})" in verdict(found)[0]


def test_of_many_that_are_not_worse_those_that_save_something_are_told_first_and_the_rest_in_one_sentence(made):
    names = {f"v{index}": WOBBLE for index in range(6)}
    told = verdict(made(names, {"v4": 0.2, "v5": 4.0}))
    assert told[0].startswith("F (v4) is not worse") and told[1].startswith("G (v5) is not better")
    assert told[3] == "Not worse by more than 0.05 in retrieval.ndcg@5 as well: C (v1), D (v2) and E (v3)."


def test_a_grid_names_the_levels_that_gain_little_over_all_settings_of_the_others(compared):
    random = np.random.default_rng(6)
    values = {name: random.permutation(np.tile([0.0, 1.0], 150)) for name in GRID}
    found = compared(values, GRID, declared={"margins": {MAIN: 0.07}})
    dear = [4.0 if name.startswith("always") else 1.0 for name in found.latency["variant_id"]]
    advised = recommendation(replace(found, latency=found.latency.assign(median_s=dear)))
    assert advised.variant_id == found.run.baseline
    assert advised.headline.endswith(
        "reliably better in retrieval.ndcg@5, and query.hyde = always may be left out: over all settings of the others "
        "it would not gain more than 0.07."
    )


def test_a_grid_has_a_row_a_main_effect_with_what_it_costs(grid):
    rows = {row.name: row for row in module_rows(grid)}
    table = grid.effects.table[grid.effects.table["kind"] == "main"]
    assert rows.keys() == {"rerank.name = query_likelihood", "query.hyde = always"} and len(table) == 2
    for effect in table.to_dict("records"):
        row = rows[f"{effect['factor']} = {effect['level']}"]
        assert (row.effect, row.low, row.high, row.n) == tuple(effect[k] for k in ("effect", "low", "high", "n"))
        assert (row.word, row.against, row.price.signed) == ("better", "none", "about the same")


def test_other_designs_have_a_row_a_variant_the_best_first_and_the_unscored_last(wide):
    rows = module_rows(wide)
    assert [row.word for row in rows] == ["better", "better", "cannot tell", "cannot tell", "failed"]
    assert [row.effect for row in rows[:2]] == sorted((row.effect or 0 for row in rows[:2]), reverse=True)
    assert rows[-1].effect is None and "is not on this machine" in rows[-1].why
    assert {row.variant_id for row in rows} == {plan.variant_id for plan in wide.variants[1:]}
    assert rows[0].price.seconds is not None and rows[0].price.seconds > 5


def test_what_only_the_correction_takes_back_is_undecided_and_says_so(promising):
    row = next(row for row in module_rows(promising) if row.name == "v0")
    assert row.word == "cannot tell"
    assert row.why.startswith("alone it would count as better; corrected p = ")


@pytest.mark.parametrize(("shift", "word"), [(0.1, "worse"), (-0.1, "better")])
def test_of_a_metric_in_which_less_is_better_less_is_better(compared, shift, word):
    base = np.linspace(0.3, 0.6, 30)
    values = {"a": base, "b": base + shift + 0.001 * (np.arange(30) % 3)}
    plans = {"a": {}, "b": {"rerank.final_k": 3}}
    found = compared(values, plans, "retrieval.ndcg@5")
    scales = {"retrieval.ndcg@5": Scale(0.0, 1.0, higher_is_better=False)}
    turned = with_answers(replace(found, scales=scales))
    assert [row.word for row in module_rows(turned)] == [word]
