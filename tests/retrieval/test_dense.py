from doubles import Corpus, hits
from rag_lab.retrieval.dense import DenseSearch

from rag_lab.records import Question, Trace
from rag_lab.retrieval.merge import Merge
from rag_lab.testing import HashEmbedder


def test_a_batch_is_one_search():
    corpus = Corpus()
    DenseSearch(corpus, HashEmbedder(), 2).run([Trace(Question(str(i), "?"), search_query=f"q{i}") for i in range(5)])
    assert corpus.searched == [5]


def test_hits_carry_the_score_of_their_search():
    trace = Trace(Question("q", "?"), search_query="oven", hypothetical="The oven trips.")
    (by_question,) = DenseSearch(Corpus(), HashEmbedder(), 2).run([trace])
    (by_document,) = DenseSearch(Corpus(), HashEmbedder(), 2, by="hypothetical").run([trace])
    assert [hit.scores for hit in by_question.updates["base_hits"]] == [{"dense": 1.0}, {"dense": 0.5}]
    assert [hit.scores for hit in by_document.updates["hyde_hits"]] == [{"hyde": 1.0}, {"hyde": 0.5}]


def test_without_a_hypothetical_document_nothing_is_searched():
    corpus = Corpus()
    traces = [Trace(Question("q", "?"), hypothetical=text) for text in (None, "The oven trips.")]
    without, found = DenseSearch(corpus, HashEmbedder(), 2, by="hypothetical").run(traces)
    assert without.updates == {"hyde_hits": ()}
    assert len(found.updates["hyde_hits"]) == 2
    assert corpus.searched == [1]


def test_merge_removes_duplicates_and_keeps_the_limit():
    trace = Trace(
        Question("q", "?"),
        base_hits=tuple(hits("press#p1", "oven#p1")),
        hyde_hits=tuple(hits("oven#p1", "oven#p2", step="hyde")),
    )
    (outcome,) = Merge(2).run([trace])
    merged = outcome.updates["candidates"]
    assert [hit.parent_id for hit in merged] == ["oven#p1", "press#p1"]
    assert set(merged[0].scores) == {"dense", "hyde", "rrf"}


def test_finding_nothing_is_a_failure():
    (outcome,) = Merge(2).run([Trace(Question("q", "?"))])
    assert (outcome.status, outcome.reason) == ("failed", "nothing was found")
