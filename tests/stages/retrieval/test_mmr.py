import numpy as np
import pytest
from doubles import Corpus, hits
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.records import Question, Trace
from rag_lab.stages.retrieval.mmr import SearchMmr, maximal_marginal_relevance
from rag_lab.stages.retrieval.search import Search
from rag_lab.stages.retrieval.searcher import DenseSearcher
from rag_lab.testing import HashEmbedder

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
    stage = Search(DenseSearcher(corpus, Twins()), corpus, k, "dense", mmr=mmr, **changes)
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
