"""Effects of a nested grid against means that are worked out by hand, and those of a full grid against `contrasts`."""

from itertools import product

import numpy as np
import pytest
from nested_grid import BASE, HYDE, RERANK, RULE, RUN, SAME

from rag_lab.statistics.effects.contrasts import contrasts
from rag_lab.statistics.effects.factors import read_factors
from rag_lab.statistics.effects.nested_contrasts import _nested, contrasts_of

SCORES = {name: float(value) for name, value in zip(RUN, np.random.default_rng(1).uniform(size=len(RUN)), strict=True)}


@pytest.fixture
def effects():
    found = contrasts_of(read_factors(RUN, BASE, planned="grid", same=SAME))
    return {(c.kind, c.factor, c.other, c.other_level): c for c in found}


def value(contrast):
    return sum(weight * SCORES[variant] for variant, weight in contrast.weights.items())


def test_a_factor_counts_where_it_can_differ_and_each_pair_of_pipelines_once(effects):
    s = SCORES
    rule = [s[f"classified-b-{r}"] - s[f"classified-a-{r}"] for r in ("off", "on")]
    assert value(effects["main", RULE, "", ""]) == pytest.approx(np.mean(rule))
    hyde = [s[f"classified-{q}-{r}"] - s[f"none-a-{r}"] for q, r in product("ab", ("off", "on"))]
    assert value(effects["main", HYDE, "", ""]) == pytest.approx(np.mean(hyde))
    rerank = [s[f"{one}-on"] - s[f"{one}-off"] for one in ("none-a", "classified-a", "classified-b")]
    assert value(effects["main", RERANK, "", ""]) == pytest.approx(np.mean(rerank))


def test_what_means_nothing_is_no_effect(effects):
    assert ("conditional", RULE, HYDE, "none") not in effects
    assert not any(kind == "interaction" and {factor, other} == {HYDE, RULE} for kind, factor, other, _ in effects)
    s = SCORES
    at_classified = effects["conditional", RULE, HYDE, "classified"]
    assert value(at_classified) == pytest.approx(value(effects["main", RULE, "", ""]))
    rule_and_rerank = s["classified-b-on"] - s["classified-b-off"] - s["classified-a-on"] + s["classified-a-off"]
    assert value(effects["interaction", RULE, RERANK, "on"]) == pytest.approx(rule_and_rerank)


def test_every_effect_is_a_contrast_of_all_variants_whose_sentences_find_their_levels(effects):
    for contrast in effects.values():
        assert list(contrast.weights) == list(RUN)
        assert sum(contrast.weights.values()) == pytest.approx(0)
        if contrast.kind == "interaction":
            for factor, other in ((contrast.factor, contrast.other), (contrast.other, contrast.factor)):
                held = {key[3] for key in effects if key[:3] == ("conditional", factor, other)}
                assert held >= {contrast.other_level, contrast.other_first} or factor == contrast.other


def test_a_full_grid_has_the_effects_of_a_full_grid():
    cells = {f"{a}{b}{c}": {"A": a, "B": b, "C": c} for a, b, c in product("01", "xyz", "pq")}
    factors = read_factors(cells, "0xp", planned="grid")
    ours, theirs = list(_nested(factors)), list(contrasts(factors))
    assert list(contrasts_of(factors)) == theirs and len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert (one.kind, one.factor, one.level, one.other, one.other_level) == (
            other.kind, other.factor, other.level, other.other, other.other_level,
        )  # fmt: skip
        assert one.weights == pytest.approx(other.weights)
