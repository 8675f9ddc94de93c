from dataclasses import replace

import numpy as np
import pytest
from doubles import Corpus, hits
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.models.truncation import TruncatedChildren, Truncation
from rag_lab.records import Question, Trace
from rag_lab.stages.retrieval.search import DenseSearcher, TextSearch
from rag_lab.stages.retrieval.select import SearchMmr, Select, before_largest_drop, maximal_marginal_relevance
from rag_lab.testing import HashEmbedder


def select(ranked, cut="none", trade_off=0.5, keep=9, embedder=None):
    stage = Select(Corpus(), embedder, cut, trade_off, keep)
    (outcome,) = stage.run([Trace(Question("q", "?"), ranked=tuple(ranked))])
    return outcome


def test_the_knee_is_cut_and_the_trace_says_so():
    scores = [0.9, 0.8, 0.2, 0.1]
    ranked = [
        replace(hit, score=s) for hit, s in zip(hits("press#p1", "oven#p1", "oven#p2", "log#0-50"), scores, strict=True)
    ]
    outcome = select(ranked, cut="knee")
    assert [hit.parent_id for hit in outcome.updates["ranked"]] == ["press#p1", "oven#p1"]
    assert outcome.reason == "cut at the knee: 2 of 4"
    assert [hit.score for hit in outcome.updates["ranked"]] == [0.9, 0.8]


def test_mmr_prefers_what_is_new_and_keeps_both_scores():
    ranked = hits("oven#p2", "oven#p2", "log#0-50")
    ranked = [replace(hit, score=score) for hit, score in zip(ranked, (1.0, 0.9, 0.5), strict=True)]
    found = select(ranked, trade_off=0.3, embedder=HashEmbedder()).updates["ranked"]
    assert [hit.parent_id for hit in found] == ["oven#p2", "log#0-50", "oven#p2"]
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    assert all({"dense", "mmr"} == set(hit.scores) for hit in found)


def test_a_batch_is_embedded_in_one_call_and_lists_stay_apart():
    embedder = HashEmbedder()
    stage = Select(Corpus(), embedder, "none", 1.0, 2)
    traces = [
        Trace(Question("a", "?"), ranked=tuple(hits("press#p1", "oven#p1", "log#0-50"))),
        Trace(Question("b", "?")),
        Trace(Question("c", "?"), ranked=tuple(hits("oven#p1"))),
    ]
    found = [[hit.parent_id for hit in outcome.updates["ranked"]] for outcome in stage.run(traces)]
    assert found == [["press#p1", "oven#p1"], [], ["oven#p1"]]
    assert len(embedder.documents) == 4


def test_what_was_not_read_of_the_children_that_are_compared_is_counted():
    index = Corpus()
    index.truncation = TruncatedChildren(Truncation(8, 3, 1, 90, 30, 5), {"press#p1/0": 5})
    trace = Trace(Question("q", "?"), ranked=tuple(hits("press#p1", "oven#p1")))
    counts = [
        Select(index, embedder, "none", 0.5, 2).run([trace])[0].truncated_tokens for embedder in (HashEmbedder(), None)
    ]
    assert counts == [5, 0]


EAST, NORTH, NORTH_EAST = [1, 0], [0, 1], [0.5**0.5, 0.5**0.5]
items = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 6)), max_size=8)


def units(angles):
    return np.array([[np.cos(angle), np.sin(angle)] for angle in angles]).reshape(-1, 2)


def test_a_copy_waits_behind_something_new():
    vectors = np.array([EAST, EAST, NORTH])
    chosen = maximal_marginal_relevance([1.0, 0.9, 0.5], vectors, 3, 0.5)
    assert [position for position, _ in chosen] == [0, 2, 1]
    assert [value for _, value in chosen] == pytest.approx([0.5, 0.25, 0.45 - 0.5])


def test_similarity_is_to_the_nearest_of_those_chosen():
    vectors = np.array([EAST, NORTH, NORTH_EAST])
    chosen = maximal_marginal_relevance([1.0, 1.0, 1.0], vectors, 3, 0.6)
    assert chosen[2] == (2, pytest.approx(0.6 - 0.4 * 0.5**0.5))


@given(items, st.integers(1, 9))
def test_with_all_the_weight_on_relevance_it_is_a_sort(given_items, keep):
    relevance = [value for value, _ in given_items]
    chosen = maximal_marginal_relevance(relevance, units([angle for _, angle in given_items]), keep, 1.0)
    order = sorted(range(len(relevance)), key=lambda position: -relevance[position])
    assert [position for position, _ in chosen] == order[:keep]


@given(items, st.integers(1, 9), st.floats(0, 1))
def test_each_is_chosen_once_and_values_never_rise(given_items, keep, trade_off):
    relevance = [value for value, _ in given_items]
    chosen = maximal_marginal_relevance(relevance, units([angle for _, angle in given_items]), keep, trade_off)
    positions, values = [p for p, _ in chosen], [value for _, value in chosen]
    assert len(set(positions)) == len(positions) == min(keep, len(given_items))
    assert all(first >= second - 1e-12 for first, second in zip(values, values[1:], strict=False))


class Twins(HashEmbedder):
    """The two pages of the oven are one text to it."""

    def embed_documents(self, texts):
        ovens = ("oven" in text and "shift" not in text for text in texts)
        return super().embed_documents(
            ["oven" if is_oven else text for is_oven, text in zip(ovens, texts, strict=True)]
        )


def search(k, fetch_k, trade_off=0.5, **changes):
    corpus = Corpus()
    mmr = SearchMmr(corpus, Twins(), fetch_k, trade_off)
    stage = TextSearch(DenseSearcher(corpus, Twins()), corpus, k, "dense", mmr=mmr, **changes)
    (outcome,) = stage.run([Trace(Question("q", "?"), search_query="oven")])
    return outcome.updates["hits.dense"]


def test_a_search_chooses_among_more_than_it_hands_on():
    plain = [hit.parent_id for hit in hits("press#p1", "oven#p1", "oven#p2", "log#0-50")]
    assert [hit.parent_id for hit in search(3, 4, trade_off=1.0)] == plain[:3]
    found = search(3, 4, trade_off=0.3)
    assert found[0].parent_id == "press#p1" and len({hit.parent_id for hit in found} & {"oven#p1", "oven#p2"}) == 1
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    assert all(hit.scores["mmr"] == hit.score and hit.scores["dense"] > 0 for hit in found)


def test_what_is_below_the_threshold_is_no_choice_and_relevance_is_the_cosine():
    found = search(4, 4, min_score=0.4)
    assert [hit.parent_id for hit in found] == ["press#p1", "oven#p1"]
    assert found[0].score == pytest.approx(0.5 * found[0].scores["dense"])


@pytest.mark.parametrize(
    ("scores", "kept"),
    [
        ([], 0),
        ([0.9], 1),
        ([0.9, 0.8, 0.3, 0.2], 2),
        ([0.9, 0.1, 0.05], 1),
        ([5, 5, 5], 3),
        ([5, 5, 1, 1], 2),
        ([3, 2, 1], 1),  # of equal drops, the first
    ],
)
def test_the_list_ends_before_its_largest_drop(scores, kept):
    assert before_largest_drop(scores) == kept


@given(st.lists(st.integers(-99, 99), min_size=1, max_size=9).map(lambda x: sorted(x, reverse=True)), st.integers(1, 5))
def test_scale_and_shift_do_not_matter_and_something_is_always_kept(scores, factor):
    kept = before_largest_drop(scores)
    assert 1 <= kept <= len(scores)
    assert before_largest_drop([factor * score + 7 for score in scores]) == kept
