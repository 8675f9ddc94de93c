from doubles import Corpus, hits

from rag_lab.records import Question, Trace
from rag_lab.stages.retrieval.combine import Combine
from rag_lab.stages.retrieval.merge import Merge
from rag_lab.stages.retrieval.search import Search
from rag_lab.stages.retrieval.searcher import DenseSearcher, SparseSearcher
from rag_lab.testing import HashEmbedder


def dense(corpus, k=2, **changes):
    field = "hyde" if changes.get("by") == "hypothetical" else "dense"
    return Search(DenseSearcher(corpus, HashEmbedder(), **changes), corpus, k, field)


def test_a_batch_is_one_search():
    corpus = Corpus()
    traces = [Trace(Question(str(i), "?"), search_query=f"q{i}", phrasings=("other",)) for i in range(5)]
    dense(corpus).run(traces)
    assert corpus.searched == [10]


def test_askers_with_the_same_rights_share_a_search():
    corpus = Corpus()
    rights = [None, (), ("staff",), None, ()]
    traces = [Trace(Question(str(n), "?", may_see=held), search_query="q") for n, held in enumerate(rights)]
    dense(corpus).run(traces)
    assert corpus.searched == [2, 3]  # to see the one public label is all that the second and third can


def test_hits_carry_the_score_of_their_search():
    trace = Trace(Question("q", "?"), search_query="oven", hypothetical="The oven trips.")
    (by_question,) = dense(Corpus()).run([trace])
    (by_document,) = dense(Corpus(), by="hypothetical").run([trace])
    (by_words,) = Search(SparseSearcher(Corpus(), "bm25", "unicode"), Corpus(), 2, "bm25").run([trace])
    assert [hit.scores for hit in by_question.updates["hits.dense"]] == [{"dense": 1.0}, {"dense": 0.5}]
    assert [hit.scores for hit in by_document.updates["hits.hyde"]] == [{"hyde": 1.0}, {"hyde": 0.5}]
    assert [hit.scores for hit in by_words.updates["hits.bm25"]] == [{"bm25": 1.0}, {"bm25": 0.5}]


def test_without_a_hypothetical_document_nothing_is_searched():
    corpus = Corpus()
    traces = [Trace(Question("q", "?"), hypothetical=text) for text in (None, "The oven trips.")]
    without, found = dense(corpus, by="hypothetical").run(traces)
    assert without.updates == {"hits.hyde": ()}
    assert len(found.updates["hits.hyde"]) == 2
    assert corpus.searched == [1]


def test_below_the_least_similarity_nothing_is_kept():
    trace = Trace(Question("q", "?"), search_query="oven")
    (outcome,) = dense(Corpus(), k=4, min_similarity=0.4).run([trace])
    assert [hit.score for hit in outcome.updates["hits.dense"]] == [1.0, 0.5]


def test_phrasings_are_merged_by_rank():
    trace = Trace(Question("q", "?"), search_query="oven", phrasings=("furnace", "kiln"))
    (outcome,) = dense(Corpus()).run([trace])
    best = outcome.updates["hits.dense"][0]
    assert best.scores == {"dense": 1.0, "rrf": best.score}
    assert best.score == 3 / 61


def combined(normalization="min_max", k=9, **weights):
    trace = Trace(
        Question("q", "?"),
        hits={
            "dense": tuple(hits("press#p1", "oven#p1")),
            "bm25": tuple(hits("oven#p1", "oven#p2", step="bm25")),
            "tfidf": tuple(hits("log#0-50", step="tfidf")),
        },
    )
    (outcome,) = Combine(weights, normalization, 60, k).run([trace])
    return outcome.updates["base_hits"]


def test_a_single_search_is_handed_on_as_it_is():
    assert combined(bm25=1.0) == tuple(hits("oven#p1", "oven#p2", step="bm25"))
    assert len(combined(bm25=1.0, k=1)) == 1


def test_searches_are_combined_with_their_weights():
    assert {hit.parent_id: hit.score for hit in combined(dense=0.4, bm25=0.3, tfidf=0.3)} == {
        "press#p1": 0.4,
        "oven#p1": 0.3,
        "log#0-50": 0.3,
        "oven#p2": 0.0,
    }
    by_rank = combined("reciprocal_rank", dense=0.7, bm25=0.3)
    assert by_rank[0].scores["rrf"] == by_rank[0].score
    assert [hit.parent_id for hit in by_rank] == ["oven#p1", "press#p1", "oven#p2"]


def test_merge_removes_duplicates_and_keeps_the_limit():
    trace = Trace(
        Question("q", "?"),
        base_hits=tuple(hits("press#p1", "oven#p1")),
        hits={"hyde": tuple(hits("oven#p1", "oven#p2", step="hyde"))},
    )
    (outcome,) = Merge(2).run([trace])
    merged = outcome.updates["candidates"]
    assert [hit.parent_id for hit in merged] == ["oven#p1", "press#p1"]
    assert set(merged[0].scores) == {"dense", "hyde", "rrf"}


def test_merging_one_list_keeps_its_scores():
    found = tuple(hits("press#p1", "oven#p1"))
    for trace in (Trace(Question("q", "?"), base_hits=found), Trace(Question("q", "?"), hits={"hyde": found})):
        assert Merge(2).run([trace])[0].updates["candidates"] == found


def test_finding_nothing_is_a_result():
    (outcome,) = Merge(2).run([Trace(Question("q", "?"))])
    assert (outcome.status, outcome.reason, outcome.updates["candidates"]) == ("ok", "nothing was found", ())
