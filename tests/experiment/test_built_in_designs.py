from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.config import PipelineConfig
from rag_lab.experiment.built_in_designs import fractional, random_draw
from rag_lab.experiment.design import ExperimentError, Wanted, expand

FIVE = {
    "query.hyde": ["none", "always"],
    "query.rewrite": ["none", "llm"],
    "rerank.name": ["none", "query_likelihood"],
    "retrieval.mode": ["dense", "bm25"],
    "rerank.final_k": [5, 3],
}


def signs(runs):
    return np.array([[-1 if level == 0 else 1 for level in run.values()] for run in runs])


def resolution(matrix):
    """Return the length of the shortest product of columns that is constant, by multiplying all of them."""
    n_runs, n_factors = matrix.shape
    for size in range(1, n_factors + 1):
        for chosen in combinations(range(n_factors), size):
            if abs(matrix[:, chosen].prod(axis=1).sum()) == n_runs:
                return size
    return n_factors + 1  # the whole grid


@given(st.integers(1, 9), st.integers(3, 7))
@settings(max_examples=30, deadline=None)
def test_every_fraction_is_balanced_and_has_at_least_the_stated_resolution(n_factors, wanted):
    runs = fractional({}, {f"f{n}": [0, 1] for n in range(n_factors)}, Wanted(resolution=wanted))
    matrix = signs(runs)
    assert len({tuple(row) for row in matrix}) == len(runs)
    assert set(runs[0].values()) == {0}
    assert (matrix.T @ matrix == len(runs) * np.eye(n_factors)).all() and not matrix.sum(axis=0).any()
    assert resolution(matrix) >= min(wanted, n_factors + 1)


@pytest.mark.parametrize(
    ("n_factors", "wanted", "n_runs"),
    [(3, 3, 4), (7, 3, 8), (8, 4, 16), (5, 5, 16), (6, 6, 32), (7, 5, 64), (11, 5, 128), (4, 5, 16)],
)
def test_a_fraction_has_as_few_runs_as_the_tables_of_the_literature_say(n_factors, wanted, n_runs):
    assert len(fractional({}, {f"f{n}": [0, 1] for n in range(n_factors)}, Wanted(resolution=wanted))) == n_runs


@pytest.mark.parametrize(("n_factors", "n", "found"), [(5, 8, 3), (5, 31, 5), (7, 16, 4), (6, 16, 4), (3, 8, 4)])
def test_of_at_most_n_runs_the_highest_resolution_is_taken(n_factors, n, found):
    runs = fractional({}, {f"f{place}": [0, 1] for place in range(n_factors)}, Wanted(n=n))
    assert len(runs) <= n and resolution(signs(runs)) == found


def test_the_plan_says_what_is_confounded_with_what():
    expansion = expand(PipelineConfig(), FIVE, "fractional", Wanted(n=8))
    assert len(expansion.variants) == 8 and expansion.baseline.changes == {}
    told = expansion.notices[0]
    assert "8 of the 32 combinations, has resolution III: it confounds the main effect of query.hyde with" in told
    assert "×" in told and "each is the sum of all that it is confounded with" in told
    assert "has resolution V:" in expand(PipelineConfig(), FIVE, "fractional").notices[0]


@pytest.mark.parametrize(
    ("factors", "wanted", "said"),
    [
        (
            FIVE | {"rerank.final_k": [5, 3, 8]},
            Wanted(),
            "takes factors with two values, and rerank.final_k has 3; take",
        ),
        (FIVE, Wanted(n=4), "n: 5 factors need at least 8 runs for main effects that can be told apart, got 4"),
        (FIVE, Wanted(n=8, resolution=4), "takes a resolution or the most runs that it may have, not both"),
    ],
)
def test_what_cannot_be_a_fraction_is_one_sentence(factors, wanted, said):
    with pytest.raises(ExperimentError, match=said):
        expand(PipelineConfig(), factors, "fractional", wanted)


def test_a_rule_that_moves_runs_out_of_a_fraction_is_told():
    factors = FIVE | {"query.hyde_max_tokens": [128, 64]}
    rules = {"query.hyde_max_tokens": {"query.hyde": ["always"]}}
    expansion = expand(PipelineConfig(), factors, "fractional", Wanted(only_if=rules))
    assert "runs are moved out of it by only_if, so that it is not balanced" in expansion.notices[1]
    assert all("query.hyde" in v.changes for v in expansion.variants if "query.hyde_max_tokens" in v.changes)


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
