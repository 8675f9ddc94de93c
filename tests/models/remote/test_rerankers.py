import json
import logging

import pytest
from loopback_models import Scripted, rerank_server

from rag_lab.errors import ModelError
from rag_lab.models import shared
from rag_lab.models.remote.rerankers import CohereScorer, JinaScorer, TeiScorer, VllmScorer
from rag_lab.models.remote.retries import RetryPolicy

KINDS = [TeiScorer, VllmScorer, CohereScorer, JinaScorer]
PAIRS = [("press bar", "the press runs at 140 bar"), ("filter", "the filter"), ("press bar", "the oven")]


@pytest.fixture(autouse=True)
def _keys(monkeypatch):
    for name in ("CO_API_KEY", "JINA_API_KEY", "VLLM_API_KEY", "TEI_API_KEY"):
        monkeypatch.setenv(name, "hunter2secret")


def scorer_of(kind, server, **options):
    scorer = kind("tiny", base_url=server.url, **options)
    scorer.retry = RetryPolicy(2, sleep=lambda _: None)
    return scorer


@pytest.mark.parametrize("kind", KINDS)
def test_a_question_with_its_passages_is_one_call_and_no_pair_is_sent_twice(kind):
    with rerank_server() as server:
        scores = scorer_of(kind, server, concurrency=1).score([*PAIRS, PAIRS[0]])
    assert scores[0] == scores[3] > scores[2]
    sent = [(body["query"], body.get("texts") or body["documents"]) for body in server.bodies]
    assert sent == [("press bar", ["the press runs at 140 bar", "the oven"]), ("filter", ["the filter"])]
    assert {headers["Authorization"] for headers in server.headers} == {"Bearer hunter2secret"}


@pytest.mark.parametrize("below", ["", "/v1", "/v2"])
def test_the_route_stands_below_the_address(below):
    with rerank_server() as server:
        scorer = shared.scorer("cross_encoder", f"vllm:tiny?base_url={server.url}{below}&max_tokens=99")
        assert scorer.score(PAIRS[:1])[0] > 0
    assert server.paths == [f"{below}/rerank"]
    (body,) = server.bodies
    assert (body["model"], body["top_n"], body["truncate_prompt_tokens"]) == ("tiny", 1, 99)


def test_where_the_server_counts_too_few_texts_pairs_are_estimated(caplog):
    with rerank_server(most_tokens=64) as server:
        scorer = scorer_of(TeiScorer, server)
        assert scorer.most_tokens == 64
        server.seen = Scripted(raw='[[{"text": "press"}]]')
        assert scorer.pair_tokens([("press", "grease " * 80)])[0] > 80
    assert "does not count tokens" in caplog.text


def test_where_the_server_says_how_much_it_reads_longer_pairs_are_cut_and_counted():
    long = ("press", "grease " * 80 + "press")
    for kind in (TeiScorer, VllmScorer):
        with rerank_server(most_tokens=64) as server:
            scorer = scorer_of(kind, server)
            assert scorer.most_tokens == 64
            short, counted = scorer.pair_tokens([PAIRS[0], long])
            assert (short <= 64, counted) == (True, 82)
            assert scorer.score([long, ("press", "press")])[0] < scorer.score([("press", "press")])[0]
        assert server.looks.count("/tokenize") <= 2


@pytest.mark.parametrize("kind", [TeiScorer, VllmScorer])
def test_tokens_that_the_server_does_not_count_are_estimated_from_above(kind, caplog):
    with rerank_server(most_tokens=64) as server, caplog.at_level(logging.WARNING):
        scorer = scorer_of(kind, server)
        assert scorer.most_tokens == 64
        server.seen = Scripted("no such route", status=404)
        (counted,) = scorer.pair_tokens([("press", "grease " * 80)])
    assert counted > 81
    assert "they are estimated" in caplog.text


@pytest.mark.parametrize("kind", [TeiScorer, VllmScorer])
def test_a_server_that_does_not_say_how_much_it_reads_still_scores(kind):
    with rerank_server() as server:
        server.seen = Scripted(status=404)
        scorer = scorer_of(kind, server)
        assert (scorer.most_tokens, len(scorer.score(PAIRS))) == (None, 3)
        assert scorer.pair_tokens(PAIRS)[0] > 7


def test_what_the_services_read_of_a_passage_is_said_to_them_and_counted():
    with rerank_server() as server:
        scorer = scorer_of(CohereScorer, server, max_tokens=100)
        scorer.score(PAIRS[:1])
    assert server.bodies[0]["max_tokens_per_doc"] == scorer.most_tokens == 100
    assert scorer.pair_tokens([("a " * 500, "short")])[0] < 10


def test_a_server_of_another_model_is_refused():
    with rerank_server("other/model") as server, pytest.raises(ModelError, match="has the model other/model, and tiny"):
        scorer_of(TeiScorer, server).score(PAIRS)


@pytest.mark.parametrize("kind", [CohereScorer, JinaScorer])
def test_a_service_needs_its_key(kind, monkeypatch):
    for name in kind.key_variables:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModelError, match=kind.key_variables[0]):
        kind("rerank").score(PAIRS)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ('{"results": [{"index": 0, "relevance_score": NaN}]}', "relevance_score"),
        ('{"results": [{"index": 7, "relevance_score": 1.0}]}', "1 scores for 1 passages"),
        ('{"results": []}', "0 scores for 1 passages"),
        (json.dumps({"results": [{"index": 0, "relevance_score": 1.0, "x": " " * 17_000_000}]}), "longer than 16 MiB"),
    ],
)
def test_scores_that_cannot_be(raw, said):
    with rerank_server(script=[Scripted(raw=raw)] * 9) as server, pytest.raises(ModelError) as caught:
        scorer_of(JinaScorer, server).score(PAIRS[:1])
    assert said in str(caught.value)
    assert len(server.bodies) == 2


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ('{"error": "Model is overloaded", "error_type": "Overloaded"}', "Model is overloaded"),
        ('{"detail": [{"loc": ["body"], "msg": "field required"}]}', "field required"),
        ('{"message": "too long"}', "too long"),
        ("gateway", "status 422"),
    ],
)
def test_a_refusal_is_told_in_the_server_s_words_and_not_repeated(raw, said):
    with rerank_server(script=[Scripted(status=422, raw=raw)] * 9) as server, pytest.raises(ModelError) as caught:
        scorer_of(VllmScorer, server).score(PAIRS[:1])
    assert said in str(caught.value)
    assert len(server.bodies) == 1


def test_what_changes_the_scores_is_in_the_identity_and_nothing_else():
    def identity(**options):
        return dict(VllmScorer("m", base_url="http://127.0.0.1:1", **options).identity())

    assert identity() == {"provider": "vllm", "name": "m", "base_url": "http://127.0.0.1:1"}
    assert identity(batch_size=2, concurrency=1, timeout_s=3) == identity()
    assert identity(max_tokens=64) != identity()


def test_a_tei_server_that_did_not_say_how_much_it_reads_is_asked_again_once_it_answers():
    with rerank_server(most_tokens=8) as server:
        server.seen = Scripted(status=503)
        scorer = TeiScorer("tiny", base_url=server.url)
        assert scorer.most_tokens is None
        scorer.score([("grease", "word " * 20)])
        server.seen = Scripted()
        scorer.score([("grease", "word " * 20)])
        assert scorer.most_tokens == 8
