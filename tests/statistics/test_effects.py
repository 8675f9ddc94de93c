"""Effects of a nested grid against means worked out by hand, of a full grid against a fraction that holds all of it."""

from dataclasses import replace
from itertools import product
from typing import Any

import factories as nest
import numpy as np
import pandas as pd
import pytest
from factories import RULE, RUN, SAME, effects, paired_difference, score_table
from factories import score_table as scores
from statsmodels.formula.api import ols

from rag_lab.comparison.tables.effects import sentences
from rag_lab.statistics.effects import contrasts, factor_values, is_balanced, read_factors, words

SCORES = {
    name: float(value)
    for name, value in zip(nest.RUN, np.random.default_rng(1).uniform(size=len(nest.RUN)), strict=True)
}
HYDE, RERANK = "query.hyde", "rerank.name"
VALUES = {
    f"{hyde}-{rerank}": {HYDE: hyde, RERANK: rerank}
    for hyde, rerank in product(["none", "always"], ["none", "cross_encoder"])
}
BASE = "none-none"


@pytest.fixture
def nested():
    found = contrasts(read_factors(nest.RUN, nest.BASE, planned="grid", same=nest.SAME))
    return {(c.kind, c.factor, c.other, c.other_level): c for c in found}


def value(contrast):
    return sum(weight * SCORES[variant] for variant, weight in contrast.weights.items())


def test_a_factor_counts_where_it_can_differ_and_each_pair_of_pipelines_once(nested):
    s = SCORES
    rule = [s[f"classified-b-{r}"] - s[f"classified-a-{r}"] for r in ("off", "on")]
    assert value(nested["main", nest.RULE, "", ""]) == pytest.approx(np.mean(rule))
    hyde = [s[f"classified-{q}-{r}"] - s[f"none-a-{r}"] for q, r in product("ab", ("off", "on"))]
    assert value(nested["main", nest.HYDE, "", ""]) == pytest.approx(np.mean(hyde))
    rerank = [s[f"{one}-on"] - s[f"{one}-off"] for one in ("none-a", "classified-a", "classified-b")]
    assert value(nested["main", nest.RERANK, "", ""]) == pytest.approx(np.mean(rerank))


def test_what_means_nothing_is_no_effect(nested):
    assert ("conditional", nest.RULE, nest.HYDE, "none") not in nested
    assert not any(
        kind == "interaction" and {factor, other} == {nest.HYDE, nest.RULE} for kind, factor, other, _ in nested
    )
    s = SCORES
    at_classified = nested["conditional", nest.RULE, nest.HYDE, "classified"]
    assert value(at_classified) == pytest.approx(value(nested["main", nest.RULE, "", ""]))
    rule_and_rerank = s["classified-b-on"] - s["classified-b-off"] - s["classified-a-on"] + s["classified-a-off"]
    assert value(nested["interaction", nest.RULE, nest.RERANK, "on"]) == pytest.approx(rule_and_rerank)


def test_every_effect_is_a_contrast_of_all_variants_whose_sentences_find_their_levels(nested):
    for contrast in nested.values():
        assert list(contrast.weights) == list(nest.RUN)
        assert sum(contrast.weights.values()) == pytest.approx(0)
        if contrast.kind == "interaction":
            for factor, other in ((contrast.factor, contrast.other), (contrast.other, contrast.factor)):
                held = {key[3] for key in nested if key[:3] == ("conditional", factor, other)}
                assert held >= {contrast.other_level, contrast.other_first} or factor == contrast.other


def test_a_full_grid_has_the_effects_of_a_fraction_that_holds_all_runs():
    cells = {f"{a}{b}{c}": {"A": a, "B": b, "C": c} for a, b, c in product("01", "xyz", "pq")}
    factors = read_factors(cells, "0xp", planned="grid")
    ours, theirs = list(contrasts(factors)), list(contrasts(replace(factors, kind="fraction")))
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert (one.kind, one.factor, one.level, one.other, one.other_level) == (
            other.kind, other.factor, other.level, other.other, other.other_level,
        )  # fmt: skip
        assert one.weights == pytest.approx(other.weights)


def simulated(n: int = 120, noise: float = 0.05) -> dict[str, Any]:
    """HyDE adds 0.08 alone and nothing beside the reranker, which adds 0.1."""
    random = np.random.default_rng(3)
    difficulty = random.uniform(0.2, 0.7, n)
    gains = {"none-none": 0.0, "always-none": 0.08, "none-cross_encoder": 0.1, "always-cross_encoder": 0.1}
    return {variant: difficulty + gain + random.normal(0, noise, n) for variant, gain in gains.items()}


def row(table: pd.DataFrame, kind: str, factor: str, held: str = "") -> dict[str, Any]:
    rows = table[(table["kind"] == kind) & (table["factor"] == factor)]
    return (rows[rows["other_level"] == held] if held else rows).iloc[0].to_dict()


def test_effects_by_hand() -> None:
    columns = {"none-none": [0.1, 0.2], "always-none": [0.5, 0.4], "none-cross_encoder": [0.3, 0.6]}
    columns["always-cross_encoder"] = [0.4, 0.9]
    table = effects(scores(columns), VALUES, BASE)
    # Alone +0.4, +0.2; beside the reranker +0.1, +0.3.
    assert row(table, "main", HYDE)["effect"] == pytest.approx(0.25)
    assert row(table, "main", RERANK)["effect"] == pytest.approx((0.2 + 0.4 - 0.1 + 0.5) / 4)
    assert row(table, "conditional", HYDE, "none")["effect"] == pytest.approx(0.3)
    assert row(table, "conditional", HYDE, "cross_encoder")["effect"] == pytest.approx(0.2)
    assert row(table, "interaction", HYDE)["effect"] == pytest.approx(-0.1)


def test_a_three_factor_grid_agrees_with_least_squares() -> None:
    random = np.random.default_rng(0)
    values = {f"v{i}": dict(zip("ABD", cell, strict=True)) for i, cell in enumerate(product("xyz", "pq", "mn"))}
    columns = {variant: random.random(9) for variant in values}
    table = effects(scores(columns), values, "v0")
    long = pd.concat([pd.DataFrame({"y": columns[v], **values[v]}) for v in values])
    fit = ols("y ~ C(A, Sum) * C(B, Sum) * C(D, Sum)", long).fit()
    means = {level: fit.predict(long[long["A"] == level]).mean() for level in "xyz"}
    mains = table[(table["kind"] == "main") & (table["factor"] == "A")]
    assert list(mains["effect"]) == pytest.approx([means["y"] - means["x"], means["z"] - means["x"]])
    # With treatment coding of A and B, and D balanced out, the interaction terms are our differences of differences.
    fit = ols("y ~ C(A) * C(B) + C(D, Sum) + C(A):C(D, Sum) + C(B):C(D, Sum)", long).fit()
    found = table[(table["kind"] == "interaction") & (table["factor"] == "A") & (table["other"] == "B")]
    theirs = [fit.params["C(A)[T.y]:C(B)[T.q]"], fit.params["C(A)[T.z]:C(B)[T.q]"]]
    assert list(found["effect"]) == pytest.approx(theirs)
    assert set(table["kind"]) == {"main", "interaction", "conditional"}
    assert len(table[table["kind"] == "interaction"]) == 2 + 2 + 1


def test_sentences_say_alone_and_once() -> None:
    table = effects(scores(simulated()), VALUES, BASE)
    said = sentences(table)
    assert len(said) == 3
    assert said[0].startswith("query.hyde=always adds +0.0") and "averaged over rerank.name" in said[0]
    interaction = said[2]
    assert interaction.startswith("In m, query.hyde=always adds +0.0")
    assert "rerank.name=cross_encoder adds +0.1" in interaction and "once query.hyde=always; the diff" in interaction
    assert "while rerank.name=none, and does nothing that the data can tell from chance (" in interaction
    assert "the difference, \N{MINUS SIGN}0.0" in interaction
    assert interaction.endswith("is reliable (120 questions).")


def test_a_difference_between_reliable_and_not_is_not_called_one() -> None:
    columns = simulated(40, noise=0.1)
    columns["always-cross_encoder"] = columns["none-cross_encoder"] + (columns["always-none"] - columns[BASE]) * 0.6
    columns["always-cross_encoder"] += np.random.default_rng(0).normal(0, 0.2, 40)
    said = sentences(effects(scores(columns), VALUES, BASE))[2]
    assert "whether these two differ the data cannot tell (" in said


def test_only_questions_with_every_score_count() -> None:
    columns = simulated(30)
    columns["always-none"][:4] = np.nan
    columns["none-cross_encoder"][3:6] = np.nan
    table = effects(scores(columns), VALUES, BASE)
    assert set(table["n"]) == {24}


def test_one_factor_at_a_time_gives_toggles() -> None:
    columns = {name: column for name, column in simulated(50).items() if name != "always-cross_encoder"}
    values = {name: VALUES[name] for name in columns}
    table = effects(scores(columns), values, BASE)
    assert list(table["kind"]) == ["toggle", "toggle"]
    theirs = paired_difference(columns["always-none"], columns[BASE])
    ours = row(table, "toggle", HYDE)
    assert (ours["effect"], ours["low"]) == pytest.approx((theirs.mean, theirs.low))
    assert sentences(table)[0].startswith("query.hyde=always adds +0.0")


def test_a_grid_that_lost_a_variant_gives_toggles_and_says_why() -> None:
    columns = simulated(20)
    columns["always-cross_encoder"] = np.full(20, np.nan)
    assert set(effects(scores(columns), VALUES, BASE)["kind"]) == {"toggle"}
    three = {f"{a}{b}": {"A": a, "B": b} for a, b in product("01", "xyz") if (a, b) != ("1", "z")}
    assert read_factors(three, "0x").reason == "the variants differ in several settings at once"  # as in a list
    lacking = read_factors(three, "0x", planned="grid")
    assert (lacking.kind, lacking.reason) == ("other", "the grid lacks 1 of 6 combinations (such as A=1, B=z)")


def test_levels_from_the_changes_of_a_plan() -> None:
    found = factor_values({"baseline": {}, "b": {"final_k": 3}, "c": {"map": {"y": True, "x": False}}}, {"final_k": 5})
    assert found["baseline"] == {"final_k": "5", "map": "baseline"}
    assert found["b"] == {"final_k": "3", "map": "baseline"}
    assert found["c"]["map"] == '{"x": false, "y": true}'


@pytest.mark.parametrize("n", [1, 2, 12])
@pytest.mark.parametrize("kind", ["tied", "failed", "partly failed"])
def test_degenerate_scores_give_sentences(n: int, kind: str) -> None:
    columns = {variant: np.full(n, 0.5 if kind == "tied" else np.nan) for variant in VALUES}
    if kind == "partly failed":
        columns[BASE][0] = columns["always-none"][0] = 0.4
    table = effects(scores(columns), VALUES, BASE)
    for one in table["effect"]:
        assert one is None or np.isfinite(one)
    assert all(text.endswith(").") and "nan" not in text for text in sentences(table))


def test_an_unknown_baseline_is_told() -> None:
    with pytest.raises(ValueError, match="the baseline 'x' is none of the variants"):
        read_factors(VALUES, "x")


def test_pipelines_that_differ_in_many_ways_are_no_grid_and_take_no_time():
    values = {"a": {f"f{n}": "0" for n in range(60)}, "b": {f"f{n}": "1" for n in range(60)}}
    factors = read_factors(values, "a")
    assert factors.kind == "other"
    assert factors.reason.startswith("the variants differ in several settings at once")


HALF = [(a, b, c, a ^ b ^ c) for a, b, c in product((0, 1), repeat=3)]  # A B C D is a word
NAMES = "ABCD"


def values(runs):
    return {f"v{n}": dict(zip(NAMES, map(str, run), strict=True)) for n, run in enumerate(runs)}


def test_words_are_the_products_that_do_not_vary():
    assert words(HALF) == [frozenset(range(4))]
    assert words(list(product((0, 1), repeat=4))) == []
    assert is_balanced(HALF) and not is_balanced(HALF[:7])
    assert words([(0, 1), (0, 0)]) == [frozenset({0})]


def test_main_effects_of_a_half_are_those_of_a_regression_and_no_interactions_are_told():
    rng = np.random.default_rng(3)
    runs = zip(values(HALF), HALF, strict=True)
    scores = score_table({name: 0.3 * (run[0] + run[3]) + rng.normal(0, 0.1, 30) for name, run in runs})
    found = effects(scores, values(HALF), "v0", planned="fractional")
    assert set(found["kind"]) == {"main"}
    levels = pd.DataFrame(values(HALF)).T.rename_axis("variant_id").reset_index()
    fitted = ols("value ~ A + B + C + D", scores.merge(levels, on="variant_id")).fit().params
    for row in found.to_dict("records"):
        assert row["effect"] == pytest.approx(fitted[f"{row['factor']}[T.1]"])


def test_a_run_that_is_the_same_pipeline_as_another_counts_by_its_scores():
    known = values(HALF)
    gone = known.pop("v3")
    found = read_factors(known, "v0", planned="fractional", same=[(gone, "v1")])
    assert found.kind == "fraction" and found.runs[tuple(gone.values())] == "v1"
    assert read_factors(known, "v0", planned="fractional").kind == "other"
    assert "which are not balanced" in read_factors(known, "v0", planned="fractional").reason


def test_interactions_are_told_where_no_two_of_them_are_confounded():
    runs = [(*four, four[0] ^ four[1] ^ four[2] ^ four[3]) for four in product((0, 1), repeat=4)]  # resolution V
    named = {f"v{n}": dict(zip("ABCDE", map(str, run), strict=True)) for n, run in enumerate(runs)}
    both = zip(named, runs, strict=True)
    scores = score_table({name: 0.2 * run[0] * run[1] + 0.001 * np.arange(10) for name, run in both})
    found = effects(scores, named, "v0", planned="fractional")
    pairs = found[found["kind"] == "interaction"].set_index(["factor", "other"])["effect"]
    assert pairs[("A", "B")] == pytest.approx(0.2) and pairs[("C", "D")] == pytest.approx(0)
    assert found[(found["kind"] == "main") & (found["factor"] == "A")]["effect"].item() == pytest.approx(0.1)


def test_a_grid_whose_other_combinations_are_the_same_pipelines_is_nested():
    found = read_factors(RUN, nest.BASE, planned="grid", same=SAME)
    assert found.kind == "nested"
    assert found.reason == "2 of the 8 combinations are the same pipelines as others by construction"
    assert found.same == {("none", "b", "off"): nest.BASE, ("none", "b", "on"): "none-a-on"}
    short = [({RULE: "b"}, nest.BASE), SAME[1]]  # what is not named has the baseline's level
    assert read_factors(RUN, nest.BASE, planned="grid", same=short) == found


@pytest.mark.parametrize("planned", ["list", "one_factor", "mine:design", ""])
def test_what_was_planned_as_no_grid_lacks_no_combination(planned):
    found = read_factors(RUN, nest.BASE, planned=planned)
    assert (found.kind, found.reason) == ("other", "the variants differ in several settings at once")


def test_a_grid_lacks_what_has_no_scores_and_not_what_is_the_same_pipeline():
    lost = {name: cell for name, cell in RUN.items() if name != "classified-b-on"}
    found = read_factors(lost, nest.BASE, planned="grid", same=SAME)
    assert found.kind == "other" and found.same == {}
    assert found.reason == "the grid lacks 1 of 8 combinations (such as hyde=classified, rule=b, rerank=on)"
    without_twin = {name: cell for name, cell in RUN.items() if name != "none-a-on"}
    assert "lacks 2 of 8" in read_factors(without_twin, nest.BASE, planned="grid", same=SAME).reason


def test_a_factor_that_never_means_anything_is_none():
    runs = {name: cell for name, cell in RUN.items() if cell[nest.HYDE] == "none"} | {
        "other": {nest.HYDE: "always", RULE: "a", nest.RERANK: "off"},
        "other-on": {nest.HYDE: "always", RULE: "a", nest.RERANK: "on"},
    }
    same = [*SAME, ({nest.HYDE: "always", RULE: "b", nest.RERANK: "off"}, "other")]
    found = read_factors(runs, nest.BASE, planned="grid", same=same)
    assert found.kind == "grid" and list(found.levels) == [nest.HYDE, nest.RERANK]
