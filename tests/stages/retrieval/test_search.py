import numpy as np
from doubles import Corpus, hits

from rag_lab.models.protocols import unit_vectors
from rag_lab.records import Question, Trace
from rag_lab.stages.retrieval.fusion import Combine, Merge
from rag_lab.stages.retrieval.search import DenseSearcher, HydeSearch, SparseSearcher, TextSearch
from rag_lab.testing import HashEmbedder


def dense(corpus, k=2, min_score=None, **changes):
    return TextSearch(DenseSearcher(corpus, HashEmbedder(), **changes), corpus, k, "dense", min_score)


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
    trace = Trace(Question("q", "?"), search_query="oven")
    (by_question,) = dense(Corpus()).run([trace])
    (by_words,) = TextSearch(SparseSearcher(Corpus(), "bm25", "unicode"), Corpus(), 2, "bm25").run([trace])
    assert [hit.scores for hit in by_question.updates["hits.dense"]] == [{"dense": 1.0}, {"dense": 0.5}]
    assert [hit.scores for hit in by_words.updates["hits.bm25"]] == [{"bm25": 1.0}, {"bm25": 0.5}]


def test_below_the_least_score_nothing_is_kept_of_any_search():
    trace = Trace(Question("q", "?"), search_query="oven")
    by_words = TextSearch(SparseSearcher(Corpus(), "bm25", "unicode"), Corpus(), 4, "bm25", 0.4)
    for search in (dense(Corpus(), k=4, min_score=0.4), by_words):
        (outcome,) = search.run([trace])
        assert [hit.score for hit in outcome.updates[search.writes[0]]] == [1.0, 0.5]


def test_a_threshold_is_of_each_phrasings_scores_and_not_of_their_fused_ranks():
    trace = Trace(Question("q", "?"), search_query="oven", phrasings=("furnace",))
    (outcome,) = dense(Corpus(), k=4, min_score=0.4).run([trace])
    assert [hit.scores["dense"] for hit in outcome.updates["hits.dense"]] == [1.0, 0.5]


def test_phrasings_are_merged_by_rank():
    trace = Trace(Question("q", "?"), search_query="oven", phrasings=("furnace", "kiln"))
    (outcome,) = dense(Corpus()).run([trace])
    best = outcome.updates["hits.dense"][0]
    assert best.scores == {"dense": 1.0, "rrf": best.score}
    assert best.score == 3 / 61


def combined(normalization="min_max", k=9, min_score=None, **weights):
    trace = Trace(
        Question("q", "?"),
        hits={
            "dense": tuple(hits("press#p1", "oven#p1")),
            "bm25": tuple(hits("oven#p1", "oven#p2", step="bm25")),
            "tfidf": tuple(hits("log#0-50", step="tfidf")),
        },
    )
    (outcome,) = Combine(weights, normalization, 60, k, min_score).run([trace])
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


def test_what_several_searches_found_is_held_to_the_threshold_as_it_is_combined():
    assert [hit.parent_id for hit in combined(dense=0.4, bm25=0.3, tfidf=0.3, min_score=0.35)] == ["press#p1"]
    assert len(combined(dense=0.4, bm25=0.3, tfidf=0.3, min_score=-1.0)) == 4


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


BOTH = Trace(
    Question("q", "?"),
    base_hits=tuple(hits("press#p1", "oven#p1")),
    hits={"hyde": tuple(hits("oven#p2", "oven#p1", "log#0-50", step="hyde"))},
)


def test_base_first_adds_what_only_the_hypothetical_document_found_at_the_end():
    (outcome,) = Merge(4, "base_first").run([BOTH])
    found = outcome.updates["candidates"]
    assert [hit.parent_id for hit in found] == ["press#p1", "oven#p1", "oven#p2", "log#0-50"]
    assert [hit.score for hit in found] == [1, 1 / 2, 1 / 3, 1 / 4]
    assert set(found[1].scores) == {"dense", "hyde", "base_first"} and set(found[3].scores) == {"hyde", "base_first"}


def test_base_first_gives_the_hypothetical_document_what_is_left_of_the_limit():
    (outcome,) = Merge(3, "base_first").run([BOTH])
    assert [hit.parent_id for hit in outcome.updates["candidates"]] == ["press#p1", "oven#p1", "oven#p2"]
    (full,) = Merge(2, "base_first").run([BOTH])
    assert [hit.parent_id for hit in full.updates["candidates"]] == ["press#p1", "oven#p1"]


def test_merging_one_list_keeps_its_scores():
    found = tuple(hits("press#p1", "oven#p1"))
    for trace in (Trace(Question("q", "?"), base_hits=found), Trace(Question("q", "?"), hits={"hyde": found})):
        assert Merge(2).run([trace])[0].updates["candidates"] == found
        assert Merge(2, "base_first").run([trace])[0].updates["candidates"] == found


def test_finding_nothing_is_a_result():
    (outcome,) = Merge(2).run([Trace(Question("q", "?"))])
    assert (outcome.status, outcome.reason, outcome.updates["candidates"]) == ("ok", "nothing was found", ())


TEXTS = ("The oven trips.", "A burner is locked out.", "Alarm A7 of the furnace.")


class Recording(Corpus):
    """Keeps the vectors that it is searched by."""

    def search(self, vectors, *args, **kwargs):
        self.vectors = vectors
        return super().search(vectors, *args, **kwargs)


def searched(trace, **changes):
    corpus = Recording()
    stage = HydeSearch(DenseSearcher(corpus, HashEmbedder(), by="hypothetical"), corpus, 2, "hyde", **changes)
    (outcome,) = stage.run([trace])
    return corpus, outcome


def traced(*texts, query="oven alarm"):
    return Trace(Question("q", "?"), search_query=query, hypothetical=texts[0], other_hypotheticals=texts[1:])


def test_one_document_is_searched_as_it_is_embedded():
    corpus, outcome = searched(traced(TEXTS[0]))
    np.testing.assert_allclose(corpus.vectors, HashEmbedder().embed_documents(TEXTS[:1]), atol=1e-6)
    assert [hit.scores for hit in outcome.updates["hits.hyde"]] == [{"hyde": 1.0}, {"hyde": 0.5}]


def test_several_are_searched_by_the_mean_of_their_embeddings_with_the_query_as_one_more():
    embedder = HashEmbedder()
    documents, query = embedder.embed_documents(TEXTS), embedder.embed_queries(["oven alarm"])
    alone, _ = searched(traced(*TEXTS), several=True)
    np.testing.assert_allclose(alone.vectors, unit_vectors(documents.mean(axis=0, keepdims=True)), atol=1e-6)
    both, _ = searched(traced(*TEXTS), several=True, with_query=True)
    mean = np.concatenate([documents, query]).mean(axis=0, keepdims=True)  # Gao et al. 2022, equation 8
    np.testing.assert_allclose(both.vectors, unit_vectors(mean), atol=1e-6)
    assert not np.allclose(alone.vectors, both.vectors)


def test_the_result_depends_on_what_is_averaged_and_on_nothing_more():
    def stage(**changes):
        corpus = Corpus()
        return HydeSearch(DenseSearcher(corpus, HashEmbedder(), by="hypothetical"), corpus, 2, "hyde", **changes)

    access = ("question.may_see", "question.namespace")
    assert stage().reads == ("hypothetical", *access)
    assert stage(several=True).reads == ("hypothetical", "other_hypotheticals", *access)
    assert stage(with_query=True).reads == ("hypothetical", "search_query", *access)
    assert stage().identity() != stage(several=True).identity()
    assert stage(with_query=True).identity()["with_query"] is True


def test_without_a_document_nothing_is_searched():
    corpus = Corpus()
    stage = HydeSearch(DenseSearcher(corpus, HashEmbedder(), by="hypothetical"), corpus, 2, "hyde")
    without, found = stage.run([Trace(Question("q", "?"), hypothetical=text) for text in (None, TEXTS[0])])
    assert without.updates == {"hits.hyde": ()} and len(found.updates["hits.hyde"]) == 2
    assert corpus.searched == [1]


def test_below_the_least_score_nothing_is_kept():
    _, outcome = searched(traced(TEXTS[0]), min_score=0.6)
    assert [hit.score for hit in outcome.updates["hits.hyde"]] == [1.0]
