from itertools import product

import numpy as np
import pandas as pd
import pytest
from factories import BASE, HYDE, RERANK, RULE, RUN, SAME, effects, score_table
from statsmodels.formula.api import ols

from rag_lab.statistics.effects.factors import aliases_of, is_balanced, read_factors, words

HALF = [(a, b, c, a ^ b ^ c) for a, b, c in product((0, 1), repeat=3)]  # A B C D is a word
NAMES = "ABCD"


def values(runs):
    return {f"v{n}": dict(zip(NAMES, map(str, run), strict=True)) for n, run in enumerate(runs)}


def test_words_are_the_products_that_do_not_vary_and_make_the_aliases():
    assert words(HALF) == [frozenset(range(4))]
    assert aliases_of(frozenset({0}), words(HALF)) == [frozenset({1, 2, 3})]
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
    found = read_factors(RUN, BASE, planned="grid", same=SAME)
    assert found.kind == "nested"
    assert found.reason == "2 of the 8 combinations are the same pipelines as others by construction"
    assert found.same == {("none", "b", "off"): BASE, ("none", "b", "on"): "none-a-on"}
    short = [({RULE: "b"}, BASE), SAME[1]]  # what is not named has the baseline's level
    assert read_factors(RUN, BASE, planned="grid", same=short) == found


@pytest.mark.parametrize("planned", ["list", "one_factor", "mine:design", ""])
def test_what_was_planned_as_no_grid_lacks_no_combination(planned):
    found = read_factors(RUN, BASE, planned=planned)
    assert (found.kind, found.reason) == ("other", "the variants differ in several settings at once")


def test_a_grid_lacks_what_has_no_scores_and_not_what_is_the_same_pipeline():
    lost = {name: cell for name, cell in RUN.items() if name != "classified-b-on"}
    found = read_factors(lost, BASE, planned="grid", same=SAME)
    assert found.kind == "other" and found.same == {}
    assert found.reason == "the grid lacks 1 of 8 combinations (such as hyde=classified, rule=b, rerank=on)"
    without_twin = {name: cell for name, cell in RUN.items() if name != "none-a-on"}
    assert "lacks 2 of 8" in read_factors(without_twin, BASE, planned="grid", same=SAME).reason


def test_a_factor_that_never_means_anything_is_none():
    runs = {name: cell for name, cell in RUN.items() if cell[HYDE] == "none"} | {
        "other": {HYDE: "always", RULE: "a", RERANK: "off"},
        "other-on": {HYDE: "always", RULE: "a", RERANK: "on"},
    }
    same = [*SAME, ({HYDE: "always", RULE: "b", RERANK: "off"}, "other")]
    found = read_factors(runs, BASE, planned="grid", same=same)
    assert found.kind == "grid" and list(found.levels) == [HYDE, RERANK]
