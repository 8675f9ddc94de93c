"""Before a sweep starts: which models will not read all that they are sent, of which variants, and what that means."""

from dataclasses import replace

import pytest
from small_dataset import write_dataset
from small_plans import EMBEDDER, SCORER

from rag_lab.cli.execute import run_with_status
from rag_lab.errors import RagLabError
from rag_lab.experiment.forecast.caveats import refusals, truncation_sentences, truncations_of
from rag_lab.experiment.forecast.describe import describe
from rag_lab.experiment.plan import plan
from rag_lab.experiment.run.run_options import RunOptions
from rag_lab.experiment.run.sweep import run_plan
from rag_lab.models import shared
from rag_lab.models.providers import EMBEDDERS, QUERY_LIKELIHOODS
from rag_lab.testing import HashEmbedder, OverlapScorer

LONG = "The plan of the plant is kept by the shift. " * 12


class ReadsWords(HashEmbedder):
    most_tokens = 20

    def text_tokens(self, texts, kind):
        return [len(text.split()) for text in texts]


class ScoresWords(OverlapScorer):
    most_tokens = 60

    def pair_tokens(self, pairs):
        return [len(passage.split()) for _, passage in pairs]


@pytest.fixture(autouse=True)
def models(monkeypatch):
    monkeypatch.setattr(shared, "_NAMED", {})
    for kind, name, model in ((EMBEDDERS, EMBEDDER, ReadsWords()), (QUERY_LIKELIHOODS, SCORER, ScoresWords())):
        monkeypatch.setitem(shared._NAMED, (kind.name, name, ""), model)


@pytest.fixture
def planned(tmp_path):
    path = write_dataset(tmp_path)
    (path / "corpus" / "long.txt").write_text(LONG)

    def make(factors, **base):
        settings = {"query.hyde": "none", "query.rewrite": "none", "answer.name": "none", "corpus.chunk_overlap": 0}
        given = {"name": "e", "question": "q", "dataset": str(path), "metrics": ["retrieval.mrr@5"]}
        return plan({**given, "factors": factors}, settings=settings | base, folder=tmp_path)

    return make


def test_the_setting_whose_chunks_are_cut_is_named_and_what_its_comparison_measures(planned):
    checked = planned({"corpus.chunk_size": [80, 600]}, **{"retrieval.mode": "dense"})
    cut, measures = truncation_sentences(truncations_of(checked), checked)
    assert cut == (
        "20% of the chunks of corpus.chunk_size 600 are longer than minilm reads (20 tokens, here about 90 "
        "characters); 53% of the text is not searched by meaning."
    )
    assert measures.startswith("What minilm cuts is not alike in the variants")
    assert cut in describe(checked).replace("\n", " ")


def test_who_embeds_nothing_or_cuts_nothing_is_told_nothing(planned):
    by_words = planned({"corpus.chunk_size": [80, 600]}, **{"retrieval.mode": "bm25"})
    assert truncations_of(by_words) == []
    short = planned({"corpus.chunk_size": [80, 60]}, **{"retrieval.mode": "dense"})
    assert truncation_sentences(truncations_of(short), short) == []


def test_less_than_two_percent_of_the_text_is_not_worth_a_sentence(planned):
    checked = planned({"corpus.chunk_size": [80, 600]}, **{"retrieval.mode": "dense"})
    (found,) = [one for one in truncations_of(checked) if one.total.n_longer]
    few = replace(found, total=replace(found.total, unread_tokens=1, tokens=51))
    assert truncation_sentences([few], checked) == []


def test_of_a_model_that_does_not_say_how_much_it_reads_that_is_told(planned, monkeypatch):
    monkeypatch.setitem(shared._NAMED, (EMBEDDERS.name, EMBEDDER, ""), HashEmbedder())
    checked = planned({"corpus.chunk_size": [80, 600]}, **{"retrieval.mode": "dense"})
    (told,) = truncation_sentences(truncations_of(checked), checked)
    assert told.startswith("How much minilm reads of a chunk is not known here")


def test_all_variants_need_no_name_and_those_of_other_settings_their_own(planned):
    checked = planned({"retrieval.base_k": [5, 3], "retrieval.mode": ["dense", "bm25"]}, **{"corpus.chunk_size": 600})
    (cut,) = truncation_sentences(truncations_of(checked), checked)
    assert "20% of the chunks of baseline and base_k-3 are longer" in cut
    same = planned({"retrieval.base_k": [5, 3]}, **{"corpus.chunk_size": 600, "retrieval.mode": "dense"})
    (cut,) = truncation_sentences(truncations_of(same), same)
    assert cut.startswith("20% of the chunks are longer than minilm reads")


def test_what_a_reranker_will_not_read_is_told_once_for_the_variants_that_share_it(planned):
    reranked = {"rerank.name": "query_likelihood", "rerank.passage": "parent", "retrieval.mode": "bm25"}
    checked = planned({"corpus.chunk_size": [80, 600]}, **reranked)
    (cut,) = truncation_sentences(truncations_of(checked), checked)
    assert cut.startswith("About 20% of the parents are longer than smollm2 reads (60 tokens")
    assert cut.endswith("counts for nothing in the reranking.")


def test_a_sweep_that_refuses_does_not_start_and_nothing_is_embedded(planned, tmp_path, capsys):
    checked = planned({"corpus.chunk_size": [80, 600]}, **{"retrieval.mode": "dense", "on_truncation": "refuse"})
    (told,) = refusals(truncations_of(checked), checked)
    assert "which on_truncation of chunk_size-600 refuses: shorten the chunks" in told
    with pytest.raises(RagLabError, match="on_truncation of chunk_size-600 refuses"):
        run_plan(checked, tmp_path / "out")
    assert not (tmp_path / "out" / "plan.json").exists()
    assert shared.embedder(EMBEDDER).documents == []
    with pytest.raises(RagLabError, match="refuses"):
        run_with_status(checked, tmp_path / "out", RunOptions())
    assert "longer than minilm reads" not in "".join(capsys.readouterr())  # it is said once, by what ends it
    counted = planned({"corpus.chunk_size": [80, 600]}, **{"retrieval.mode": "dense"})
    assert refusals(truncations_of(counted), counted) == []
