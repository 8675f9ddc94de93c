"""Searches by what a model makes of each token, against the same computed one by one."""

import hashlib

import numpy as np
import pytest

from rag_lab.access import access_label, allowed_labels
from rag_lab.config import PipelineConfig
from rag_lab.errors import ModelError, StoreError
from rag_lab.experiment.stage_identities import Readers, roles_used
from rag_lab.models.protocols import unit_vectors
from rag_lab.records import Question, Trace
from rag_lab.stages.retrieval.encoded_search import EncodedSearcher, encoded_bytes
from rag_lab.stages.retrieval.search import TextSearch
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


def test_it_is_built_once_and_its_bytes_are_counted():
    index, stage = sample_index(), late(sample_index())
    first = searched(stage, QUERIES)
    before = {path.name for path in index.path.rglob("late-*")}
    assert searched(late(sample_index()), QUERIES) == first
    assert {path.name for path in index.path.rglob("late-*")} == before
    assert encoded_bytes([stage]) > sum(len(child.text.split()) * 24 for child in index.chunks.children())


def test_too_many_chunks_are_refused_with_the_number_that_fits(monkeypatch, tmp_path):
    monkeypatch.setattr(encoded, "MOST_CHUNKS", 3)
    chunks = sample_index().chunks.children()
    with pytest.raises(
        StoreError, match=f"every chunk, at most 3, and this corpus has {len(chunks)}; make chunks larger"
    ):
        encoded.LateIndex.write(tmp_path / "late", Tokens(), chunks)
    assert not (tmp_path / "late").exists()


def test_a_model_that_only_scores_pairs_is_refused():
    with pytest.raises(ModelError, match="late needs a model with the method token_vectors"):
        EncodedSearcher(sample_index(), "late", object()).opened()


def test_the_mode_reads_the_model_of_late_interaction_and_combines_with_others():
    config = PipelineConfig().override({"retrieval.mode": "late+bm25", "answer.name": "none"})
    assert config.retrieval.weights == {"late": 1.0, "bm25": 1.0}
    assert not config.searches_vectors
    assert "late_interaction" in roles_used(config, Readers())
