"""Searches by what a model makes of each token, against the same computed one by one."""

import hashlib
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from tiny_models import write_tiny_bert

from rag_lab.access import access_label, allowed_labels
from rag_lab.config import PipelineConfig
from rag_lab.errors import ModelError, StoreError
from rag_lab.experiment.stage_identities import Readers, model_problem, roles_used
from rag_lab.models.local.sentence_transformers import SparseEncoder
from rag_lab.models.protocols import unit_vectors
from rag_lab.models.providers import SPARSE_ENCODERS
from rag_lab.models.shared import model_of
from rag_lab.records import Question, Trace
from rag_lab.stages.retrieval.search import EncodedSearcher, TextSearch
from rag_lab.stores import encoded
from rag_lab.testing.doubles import WITHHELD, sample_index

QUERIES = ["why does the oven trip", "grease of the ram guides", "oven"]
INT8 = 0.005  # what eight bits change of a mean of cosines


class Tokens:
    """A direction for each word, the same wherever it stands."""

    def identity(self):
        return {"name": "tokens"}

    def token_vectors(self, kind, texts):
        seeds = [[int(hashlib.sha256(w.encode()).hexdigest()[:8], 16) for w in (t.split() or [""])] for t in texts]
        rows = [np.stack([np.random.default_rng(seed).normal(size=24) for seed in some]) for some in seeds]
        return [unit_vectors(one.astype(np.float32)) for one in rows]


def late(index, k=5, **changes):
    return TextSearch(EncodedSearcher(index, "late", Tokens(), **{"level": "child", **changes}), index, k, "late")


def searched(stage, texts, may_see=None):
    traces = [Trace(Question(text, text, may_see=may_see), search_query=text) for text in texts]
    return [outcome.updates["hits.late"] for outcome in stage.run(traces)]


def test_a_chunk_scores_the_mean_of_the_best_cosines_of_the_questions_words():
    index, model = sample_index(), Tokens()
    children = index.chunks.children()
    for text, hits in zip(QUERIES, searched(late(index, k=len(children)), QUERIES), strict=True):
        (asked,) = model.token_vectors("query", [text])
        passages = model.token_vectors("document", [child.text for child in children])
        scores = {c.chunk_id: float((asked @ p.T).max(1).mean()) for c, p in zip(children, passages, strict=True)}
        assert {hit.chunk_id: hit.scores["late"] for hit in hits} == pytest.approx(scores, abs=INT8)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_what_an_asker_may_not_see_is_no_result_and_changes_no_other():
    index = sample_index()
    everything, visible = (searched(late(index, k=99), QUERIES, rights) for rights in (("office",), ()))
    allowed = allowed_labels(index.chunks.labels, Question("q", "q", may_see=()))
    open_chunks = {c.chunk_id for c in index.chunks.children() if access_label(c.namespace, c.permissions) in allowed}
    assert any(hit.source == WITHHELD for hit in everything[0])
    for of_all, of_some in zip(everything, visible, strict=True):
        assert list(of_some) == [hit for hit in of_all if hit.chunk_id in open_chunks]


def test_it_is_built_once_and_keeps_what_that_took():
    index, stage, again = sample_index(), late(sample_index()), late(sample_index())
    first = searched(stage, QUERIES)
    before = {path.name for path in index.path.rglob("late-*")}
    assert searched(again, QUERIES) == first
    assert {path.name for path in index.path.rglob("late-*")} == before
    children, price = index.chunks.children(), stage.searcher.opened().price
    assert price == again.searcher.opened().price and price["seconds"] > 0
    assert price["chunks"] == len(children)
    assert price["bytes"] > sum(len(child.text.split()) * 24 for child in children)


def test_vectors_that_are_remembered_count_with_what_they_took_first(tmp_path):
    class Remembering(Tokens):
        replayed_s = 7.0

        def token_vectors(self, kind, texts):
            self.replayed_s += 50.0
            return super().token_vectors(kind, texts)

    encoded.LateIndex.write(tmp_path / "late", Remembering(), sample_index().chunks.children()[:3])
    assert 50 <= encoded.LateIndex(tmp_path / "late", Tokens()).price["seconds"] < 57


def test_too_many_chunks_are_refused_with_the_number_that_fits(monkeypatch, tmp_path):
    monkeypatch.setattr(encoded.LateIndex, "most", 3)
    chunks = sample_index().chunks.children()
    with pytest.raises(
        StoreError, match=f"every chunk, at most 3, and this corpus has {len(chunks)}; make chunks larger"
    ):
        encoded.LateIndex.write(tmp_path / "late", Tokens(), chunks)
    assert not (tmp_path / "late").exists()


def test_a_model_that_only_scores_pairs_is_refused():
    with pytest.raises(ModelError, match="late needs a model with the method token_vectors"):
        EncodedSearcher(sample_index(), "late", object()).opened()


@pytest.fixture(scope="module")
def splade(tmp_path_factory):
    words = {word for child in sample_index().chunks.children() for word in child.text.lower().split()}
    return write_tiny_bert(tmp_path_factory.mktemp("models") / "splade", sorted(words), 1, head="MaskedLM")


def test_splade_scores_the_words_that_question_and_chunk_share_by_their_weights(splade):
    index, model = sample_index(), SparseEncoder(str(splade))
    children = index.chunks.children()
    stage = TextSearch(EncodedSearcher(index, "splade", model, "child"), index, len(children), "splade")
    (outcome,) = stage.run([Trace(Question("q", QUERIES[0]), search_query=QUERIES[0])])
    asked = model.loaded.encode_query(QUERIES, save_to_cpu=True).to_dense().numpy()[0]
    for hit in outcome.updates["hits.splade"]:
        parts = model.windows("document", index.chunks.child(hit.chunk_id).text)
        weights = model.loaded.encode_document(parts, save_to_cpu=True).to_dense().numpy().max(axis=0)
        assert hit.scores["splade"] == pytest.approx(float(asked @ weights), rel=1e-4)
    assert len(outcome.updates["hits.splade"]) == len(children)  # of random weights, each shares some
    word, weight = model.words(model.term_weights("query", QUERIES[:1]))[0]
    assert outcome.reason.startswith(f"searched by {word} {weight:.1f}, ")
    assert weight == pytest.approx(float(asked.max()), rel=1e-5)


def test_a_long_text_is_read_in_windows_and_a_word_counts_what_it_counts_in_the_best(splade):
    model = SparseEncoder(str(splade))
    long = " ".join(child.text for child in sample_index().chunks.children())
    parts = model.windows("document", long)
    whole, each = model.term_weights("document", [long, "oven"]), model.term_weights("document", parts)
    assert len(parts) > 1
    np.testing.assert_allclose(whole[[0]].toarray()[0], each.toarray().max(axis=0), rtol=1e-4)


def test_a_model_of_the_other_kind_is_refused_before_anything_runs(splade, tmp_path):
    dense = "minilm gives no sparse vectors; name a SPLADE model"
    assert dense in model_problem("sparse", "sentence_transformers:minilm")
    assert model_problem("sparse", f"sentence_transformers:{splade}") == ""
    with pytest.raises(ModelError, match=dense):
        SparseEncoder("minilm").term_weights("query", ["x"])
    (tmp_path / "modules.json").write_text('[{"type": "sentence_transformers.sparse_encoder.models.SpladePooling"}]')
    assert "gives sparse vectors; search by it with" in model_problem("embedding", f"sentence_transformers:{tmp_path}")


@dataclass(frozen=True)
class Letters:
    """Somebody's model: each letter is a word."""

    version: ClassVar[int] = 1

    def term_weights(self, kind, texts):
        return np.array([[text.count(letter) for letter in "abcdefgh"] for text in texts])


def test_a_custom_sparse_encoder_is_checked_and_searched():
    model = model_of(SPARSE_ENCODERS, Letters())
    index = sample_index()
    hits = EncodedSearcher(index, "splade", model, "child").search(["abba"], 2, [None])[0]
    counts = {c.chunk_id: 2 * c.text.count("a") + 2 * c.text.count("b") for c in index.chunks.children()}
    assert [hit.score for hit in hits] == sorted(counts.values(), reverse=True)[:2]


def test_the_mode_reads_the_model_of_late_interaction_and_combines_with_others():
    config = PipelineConfig().override({"retrieval.mode": "late+bm25", "answer.name": "none"})
    assert config.retrieval.weights == {"late": 1.0, "bm25": 1.0}
    assert not config.searches_vectors
    assert "late_interaction" in roles_used(config, Readers())
    assert "sparse" in roles_used(config.override({"retrieval.mode": "splade"}), Readers())
