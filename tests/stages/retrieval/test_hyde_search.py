"""What is searched by where a question has hypothetical documents: one, several, and the question with them."""

import numpy as np
from doubles import Corpus

from rag_lab.models.unit_vectors import unit_vectors
from rag_lab.records import Question, Trace
from rag_lab.stages.retrieval.hyde_search import SearchHyde
from rag_lab.stages.retrieval.searcher import DenseSearcher
from rag_lab.testing import HashEmbedder

TEXTS = ("The oven trips.", "A burner is locked out.", "Alarm A7 of the furnace.")


class Recording(Corpus):
    """Keeps the vectors that it is searched by."""

    def search(self, vectors, *args, **kwargs):
        self.vectors = vectors
        return super().search(vectors, *args, **kwargs)


def searched(trace, **changes):
    corpus = Recording()
    stage = SearchHyde(DenseSearcher(corpus, HashEmbedder(), by="hypothetical"), corpus, 2, **changes)
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
        return SearchHyde(DenseSearcher(corpus, HashEmbedder(), by="hypothetical"), corpus, 2, **changes)

    access = ("question.may_see", "question.namespace")
    assert stage().reads == ("hypothetical", *access)
    assert stage(several=True).reads == ("hypothetical", "other_hypotheticals", *access)
    assert stage(with_query=True).reads == ("hypothetical", "search_query", *access)
    assert set(stage().identity()) == {"version", "searcher", "k"}
    assert stage(with_query=True).identity()["with_query"] is True


def test_without_a_document_nothing_is_searched():
    corpus = Corpus()
    stage = SearchHyde(DenseSearcher(corpus, HashEmbedder(), by="hypothetical"), corpus, 2)
    without, found = stage.run([Trace(Question("q", "?"), hypothetical=text) for text in (None, TEXTS[0])])
    assert without.updates == {"hits.hyde": ()} and len(found.updates["hits.hyde"]) == 2
    assert corpus.searched == [1]


def test_below_the_least_score_nothing_is_kept():
    _, outcome = searched(traced(TEXTS[0]), min_score=0.6)
    assert [hit.score for hit in outcome.updates["hits.hyde"]] == [1.0]
