from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.config import PipelineConfig
from rag_lab.experiment.built_in_designs import random_draw
from rag_lab.experiment.design import ExperimentError, Wanted, expand

sizes = st.lists(st.integers(1, 6), min_size=1, max_size=5)


@given(sizes, st.integers(1, 40), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_combinations_of_the_grid_are_drawn_the_baseline_among_them_and_none_twice(sizes, n, seed):
    factors = {f"f{place}": list(range(size)) for place, size in enumerate(sizes)}
    drawn = [tuple(one.values()) for one in random_draw({}, factors, Wanted(n=n, seed=seed))]
    whole = list(product(*factors.values()))
    assert drawn[0] == (0,) * len(sizes)
    assert len(set(drawn)) == len(drawn) == min(n, len(whole))
    assert drawn == sorted(drawn) and set(drawn) <= set(whole)
    assert drawn == [tuple(one.values()) for one in random_draw({}, factors, Wanted(n=n, seed=seed))]


def test_another_seed_draws_others_from_a_grid_that_is_too_large_to_be_listed():
    factors = {f"f{place}": list(range(9)) for place in range(12)}
    one, other = (random_draw({}, factors, Wanted(n=12, seed=seed)) for seed in (0, 1))
    assert len(one) == len(other) == 12 and one[1:] != other[1:]


def test_what_a_rule_makes_the_same_is_not_drawn_twice():
    factors = {"query.hyde": ["none", "always"], "query.hyde_max_tokens": [128, 64, 32]}
    rules = {"query.hyde_max_tokens": {"query.hyde": ["always"]}}
    expansion = expand(PipelineConfig(), factors, "random", Wanted(n=4, only_if=rules))
    assert len(expansion.variants) == 4 and expansion.notices == ()
    assert len(expand(PipelineConfig(), factors, "random", Wanted(n=9, only_if=rules)).variants) == 4


def test_how_many_must_be_said():
    with pytest.raises(ExperimentError, match="n: missing; say how many variants"):
        expand(PipelineConfig(), {"rerank.final_k": [5, 3]}, "random")
