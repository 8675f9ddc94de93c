from dataclasses import replace

from doubles import Corpus, hits

from rag_lab.corpus.index.vectors import UnreadChildren
from rag_lab.models.limits.unread import Unread
from rag_lab.records import Question, Trace
from rag_lab.stages.retrieval.select import Select
from rag_lab.testing import HashEmbedder


def select(ranked, cut="none", diversity="none", trade_off=0.5, keep=9, embedder=None):
    stage = Select(Corpus(), embedder or HashEmbedder(), cut, diversity, trade_off, keep)
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
    found = select(ranked, diversity="mmr", trade_off=0.3).updates["ranked"]
    assert [hit.parent_id for hit in found] == ["oven#p2", "log#0-50", "oven#p2"]
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    assert all({"dense", "mmr"} == set(hit.scores) for hit in found)


def test_a_batch_is_embedded_in_one_call_and_lists_stay_apart():
    embedder = HashEmbedder()
    stage = Select(Corpus(), embedder, "none", "mmr", 1.0, 2)
    traces = [
        Trace(Question("a", "?"), ranked=tuple(hits("press#p1", "oven#p1", "log#0-50"))),
        Trace(Question("b", "?")),
        Trace(Question("c", "?"), ranked=tuple(hits("oven#p1"))),
    ]
    found = [[hit.parent_id for hit in outcome.updates["ranked"]] for outcome in stage.run(traces)]
    assert found == [["press#p1", "oven#p1"], [], ["oven#p1"]]
    assert len(embedder.documents) == 4


def test_without_diversity_nothing_is_embedded():
    embedder = HashEmbedder()
    assert len(select(hits("press#p1", "oven#p1"), cut="knee", embedder=embedder).updates["ranked"]) == 1
    assert embedder.documents == []


def test_what_was_not_read_of_the_children_that_are_compared_is_counted():
    index = Corpus()
    index.unread = UnreadChildren(Unread(8, 3, 1, 90, 30, 5), {"press#p1/0": 5})
    trace = Trace(Question("q", "?"), ranked=tuple(hits("press#p1", "oven#p1")))
    counts = [
        Select(index, HashEmbedder(), "none", diversity, 0.5, 2).run([trace])[0].truncated_tokens
        for diversity in ("mmr", "none")
    ]
    assert counts == [5, 0]
