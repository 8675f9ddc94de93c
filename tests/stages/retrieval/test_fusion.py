from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import zscore

from rag_lab.records import Hit
from rag_lab.stages.retrieval.fusion import Ranking, fuse, normalize, reciprocal_rank_fusion

METHODS = ["none", "min_max", "z_score", "rank", "reciprocal_rank"]
BY_RANK = ["rank", "reciprocal_rank"]
LINEAR = ["min_max", "z_score"]

ids = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)
scored = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-50, 50), max_size=8)
weights = st.sampled_from([0.25, 0.5, 1.0, 3.0])
runs = st.lists(st.tuples(scored, weights), min_size=1, max_size=4)


def ranked(names, step="dense"):
    return [Hit(name, f"{name}/0", "f", None, 0, 1, 1 / (i + 1), {step: 1 / (i + 1)}) for i, name in enumerate(names)]


def hits(scores, step="s"):
    """Hits by name and score, best first, equal scores by name."""
    order = sorted(scores, key=lambda name: (-scores[name], name))
    return [Hit(name, f"{name}/{step}", "f", None, 0, 1, scores[name], {step: scores[name]}) for name in order]


def rankings(given_runs, change=lambda score: score):
    return [
        Ranking(hits({name: change(score) for name, score in scores.items()}, f"s{n}"), weight)
        for n, (scores, weight) in enumerate(given_runs)
    ]


def order(fused):
    return [hit.parent_id for hit in fused]


def test_the_formula_of_reciprocal_ranks():
    fused = reciprocal_rank_fusion([ranked("ab"), ranked("bc", "hyde")], limit=9)
    assert order(fused) == ["b", "a", "c"]
    assert fused[0].score == 1 / (60 + 1) + 1 / (60 + 2)
    assert fused[0].scores == {"dense": 1 / 2, "hyde": 1, "rrf": fused[0].score}


def test_weights_and_constant_of_reciprocal_ranks():
    lists = [Ranking(ranked("ab"), 0.7), Ranking(ranked("cb"), 0.3)]
    fused = {hit.parent_id: hit.score for hit in fuse(lists, 9, "reciprocal_rank", "rrf", constant=10)}
    assert fused == pytest.approx({"a": 0.7 / 11, "b": 0.7 / 12 + 0.3 / 12, "c": 0.3 / 11})


def test_a_weighted_sum_of_min_max_scores():
    dense, words = {"a": 0.9, "b": 0.6, "c": 0.5}, {"c": 12.0, "a": 4.0, "d": 2.0}
    fused = {
        hit.parent_id: hit.score
        for hit in fuse([Ranking(hits(dense), 0.4), Ranking(hits(words), 0.6)], 9, "min_max", "weighted")
    }
    assert fused == pytest.approx({"a": 0.4 * 1 + 0.6 * 0.2, "b": 0.4 * 0.25, "c": 0.4 * 0 + 0.6 * 1, "d": 0})


def test_absence_is_the_worst_place_of_a_list_with_z_scores():
    """A unit that a list does not hold must not stand above one that the list holds."""
    fused = fuse([Ranking(hits({"a": 3, "b": 2, "c": 1})), Ranking(hits({"d": 1, "c": 0}))], 9, "z_score", "weighted")
    values = {hit.parent_id: hit.score for hit in fused}
    z = 1.5**0.5
    assert values == pytest.approx({"a": z - 1, "b": 0 - 1, "c": -z - 1, "d": -z + 1})


def test_a_unit_keeps_every_score_and_the_child_that_ranks_it_highest():
    first = [Hit("p", "p/1", "f", None, 0, 9, 0.9, {"dense": 0.9})]
    second = [
        Hit("x", "x/0", "f", None, 0, 9, 9.0, {"bm25": 9.0}),
        Hit("p", "p/2", "f", None, 0, 9, 3.0, {"bm25": 3.0}),
    ]
    fused = {hit.parent_id: hit for hit in fuse([Ranking(second), Ranking(first)], 9, "min_max", "weighted")}
    assert fused["p"].chunk_id == "p/1"
    assert fused["p"].scores == {"dense": 0.9, "bm25": 3.0, "weighted": fused["p"].score}


@given(ids)
def test_fusing_a_list_with_nothing_or_itself_keeps_its_order(names):
    assert order(reciprocal_rank_fusion([ranked(names), []], 99)) == names
    assert order(reciprocal_rank_fusion([ranked(names), ranked(names)], 99)) == names


def test_a_tie_goes_to_the_list_with_the_larger_weight_and_there_to_the_better_rank():
    """Not to the file that sorts first: 1 / 61 = 2 / 122, 1 / 62 = 2 / 124, 1 / 63 = 2 / 126."""
    light = Ranking(ranked("abc"))
    heavy = Ranking(ranked([*(f"x{n:02}" for n in range(61)), "z", "v", "y", "v2", "w"]), 2.0)
    fused = order(fuse([light, heavy], 99, "reciprocal_rank", "rrf"))
    assert [name for name in fused if not name.startswith(("x", "v"))] == ["z", "a", "y", "b", "w", "c"]


def test_of_lists_with_the_same_weight_the_first_decides_a_tie():
    dense, words = ranked(["z", "b", "c"]), ranked(["a", "c", "b"], "bm25")
    assert order(reciprocal_rank_fusion([dense, words], 9)) == ["b", "c", "z", "a"]
    assert order(reciprocal_rank_fusion([words, dense], 9)) == ["c", "b", "a", "z"]
    both = fuse([Ranking(dense), Ranking(words)], 9, "min_max", "weighted")
    assert order(both)[:2] == ["z", "a"]


@given(runs, st.sampled_from(METHODS), st.randoms())
@settings(max_examples=150)
def test_renaming_units_changes_no_place(given_runs, method, shuffler):
    lists = [Ranking(one.hits, one.weight) for one in rankings(given_runs)]
    other = dict(zip("abcdefgh", shuffler.sample("abcdefgh", 8), strict=True))
    renamed = [
        Ranking([replace(h, parent_id=other[h.parent_id], chunk_id=other[h.parent_id]) for h in one.hits], one.weight)
        for one in lists
    ]
    assert order(fuse(renamed, 99, method, "f")) == [other[name] for name in order(fuse(lists, 99, method, "f"))]


@given(runs, st.sampled_from(METHODS), st.randoms())
@settings(max_examples=150)
def test_the_order_of_lists_with_different_weights_does_not_matter(given_runs, method, shuffler):
    lists = [Ranking(one.hits, one.weight + n) for n, one in enumerate(rankings(given_runs))]
    lists = list({one.weight: one for one in lists}.values())
    shuffled = list(lists)
    shuffler.shuffle(shuffled)
    assert fuse(lists, 99, method, "f") == fuse(shuffled, 99, method, "f")


@given(runs, st.sampled_from(BY_RANK))
@settings(max_examples=100)
def test_any_increasing_rescaling_leaves_fusion_by_rank_as_it_is(given_runs, method):
    before = fuse(rankings(given_runs), 99, method, "f")
    after = fuse(rankings(given_runs, lambda score: 1000 + score**3 / 7), 99, method, "f")
    assert order(before) == order(after)
    assert [hit.score for hit in before] == [hit.score for hit in after]


@given(runs, st.sampled_from(LINEAR), st.sampled_from([0.5, 2, 64]), st.integers(-20, 20))
@settings(max_examples=100)
def test_a_linear_rescaling_leaves_a_sum_of_scaled_scores_as_it_is(given_runs, method, factor, shift):
    before = {hit.parent_id: hit.score for hit in fuse(rankings(given_runs), 99, method, "f")}
    after = fuse(rankings(given_runs, lambda score: factor * score + shift), 99, method, "f")
    assert {hit.parent_id: hit.score for hit in after} == pytest.approx(before, abs=1e-9)


@given(runs, st.sampled_from(METHODS), st.randoms())
@settings(max_examples=100)
def test_a_list_out_of_order_gives_what_a_sorted_one_gives(given_runs, method, shuffler):
    distinct = [({name: score + ord(name) / 1000 for name, score in run.items()}, weight) for run, weight in given_runs]
    lists = rankings(distinct)
    mixed = [Ranking(shuffler.sample(list(one.hits), len(one.hits)), one.weight) for one in lists]
    assert fuse(mixed, 99, method, "f") == fuse(lists, 99, method, "f")


@given(runs, st.sampled_from(METHODS), st.integers(1, 9))
@settings(max_examples=100)
def test_no_duplicates_never_more_than_the_limit_and_best_first(given_runs, method, limit):
    fused = fuse(rankings(given_runs), limit, method, "f")
    names = order(fused)
    assert len(names) == len(set(names)) == min(limit, len({name for run, _ in given_runs for name in run}))
    assert [hit.score for hit in fused] == sorted((hit.score for hit in fused), reverse=True)


@given(scored, st.sampled_from(METHODS), weights)
def test_a_single_list_keeps_its_order(scores, method, weight):
    assert order(fuse([Ranking(hits(scores), weight)], 99, method, "f")) == order(hits(scores))


scores = st.lists(st.floats(-1e3, 1e3), max_size=12).map(lambda values: sorted(values, reverse=True))


def test_each_method_on_one_list():
    given_scores = [9.0, 5.0, 1.0]
    assert normalize(given_scores, "none") == ([9, 5, 1], 0)
    assert normalize(given_scores, "min_max") == ([1, 0.5, 0], 0)
    assert normalize(given_scores, "rank") == (pytest.approx([1, 2 / 3, 1 / 3]), 0)
    assert normalize(given_scores, "reciprocal_rank", 60) == ([1 / 61, 1 / 62, 1 / 63], 0)
    values, absent = normalize(given_scores, "z_score")
    np.testing.assert_allclose(values, zscore(given_scores))
    assert absent == values[-1]


def test_equal_scores_are_all_the_best_or_all_the_mean():
    assert normalize([3.0, 3.0], "min_max") == ([1, 1], 0)
    assert normalize([3.0, 3.0], "z_score") == ([0, 0], 0)


@given(scores, st.sampled_from(METHODS))
def test_the_order_stays_and_absence_is_never_better_than_presence(given_scores, method):
    values, absent = normalize(given_scores, method)
    assert len(values) == len(given_scores)
    assert values == sorted(values, reverse=True)
    assert method == "none" or all(value >= absent for value in values)
