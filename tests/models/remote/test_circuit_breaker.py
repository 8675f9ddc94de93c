"""A model that is down or silent costs a bounded number of attempts, whoever asks."""

import re

import pytest

from rag_lab.errors import ModelError
from rag_lab.memory.ledger import LEDGER_VARIABLE, Caller, Ledger
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.remote import requests
from rag_lab.models.remote.embedders import GeminiEmbedder
from rag_lab.models.remote.openai import OpenAIChat
from rag_lab.models.remote.requests import CALLS, TIME_OUTS, RetryPolicy, open_breaker_sentences
from rag_lab.models.shared import MeteredChat
from rag_lab.testing import Scripted, gemini_server, openai_server

ASKED = ChatRequest((Message("user", "Capital of France?"),), max_tokens=9)
HANGS, DOWN = Scripted(delay_s=60), Scripted("out of order", status=500)


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.start(None, None, None)
    monkeypatch.setenv(LEDGER_VARIABLE, str(ledger.path))
    return ledger


def model_of(server, attempts=2, **options):
    model = OpenAIChat("tiny", base_url=server.url, **options)
    model.retry = RetryPolicy(attempts, sleep=lambda _: None)
    return model


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_hanging_server_costs_a_bounded_number_of_time_outs(concurrency):
    with openai_server(lambda _: HANGS) as server:
        replies = model_of(server, 5, concurrency=concurrency, timeout_s=0.1).generate([ASKED] * 40)
        n_asked = len(server.bodies)
    assert n_asked <= TIME_OUTS + concurrency - 1
    assert all(reply.transient for reply in replies)
    assert re.search(r"^openai:tiny was given up for now: \d+ attempts in a row timed out", replies[-1].error)
    assert "did not answer" in replies[-1].error
    assert (replies[0].asked, replies[-1].asked, replies[-1].seconds) == (True, False, 0.0)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_calls_that_fail_in_a_row_end_it_too(concurrency):
    with openai_server(lambda _: DOWN) as server:
        replies = model_of(server, concurrency=concurrency).generate([ASKED] * 60)
        n_asked = len(server.bodies)
    assert 2 * CALLS <= n_asked <= 2 * (CALLS + concurrency - 1)
    said = r"given up for now: \d+ calls in a row failed, the last one because the server answered with status 500"
    assert re.search(said, replies[-1].error)


@pytest.mark.parametrize("good", ["Paris.", Scripted("too long", status=400)])
def test_an_answer_counts_from_zero_again(good):
    with openai_server(([DOWN] * (CALLS - 1) + [good]) * 3) as server:
        replies = model_of(server, 1, concurrency=1).generate([ASKED] * 3 * CALLS)
    assert all(reply.asked for reply in replies)
    assert sum(reply.transient for reply in replies) == 3 * (CALLS - 1)


def test_by_hand_it_is_asked_again_after_a_rest_and_one_more_failure_is_enough(monkeypatch):
    with openai_server([DOWN] * (CALLS + 1)) as server:
        model = model_of(server, 1, concurrency=1)
        assert "asked again 2 minutes later" in model.generate([ASKED] * (CALLS + 1))[-1].error
        monkeypatch.setattr(requests, "REST_S", -1.0)
        assert "status 500" in model.generate([ASKED])[0].error
        monkeypatch.undo()
        assert not model.generate([ASKED])[0].asked
        monkeypatch.setattr(requests, "REST_S", -1.0)
        assert [reply.text for reply in model.generate([ASKED] * 2)] == ["ok", "ok"]
        monkeypatch.undo()
        assert model.generate([ASKED])[0].text == "ok"


def test_the_kernels_of_a_sweep_share_what_they_have_seen_until_its_next_start(ledger):
    with openai_server([DOWN] * CALLS) as server:
        model_of(server, 1, concurrency=1).generate([ASKED] * (CALLS - 1))
        replies = model_of(server, 1, concurrency=1).generate([ASKED] * 2)
        assert [reply.asked for reply in replies] == [True, False]
        assert "the same command goes on" in replies[1].error
        assert not model_of(server).generate([ASKED])[0].asked
        [told] = open_breaker_sentences(ledger)
        assert told.startswith(f"openai:tiny was given up for now: {CALLS} calls in a row failed, the last one because")
        ledger.start(None, None, None)
        assert model_of(server).generate([ASKED])[0].text == "ok"
        assert open_breaker_sentences(ledger) == []


def test_one_model_given_up_leaves_the_others(ledger):
    with openai_server(lambda body: "ok" if body["model"] == "other" else DOWN) as server:
        assert not model_of(server).generate([ASKED] * 2 * CALLS)[-1].asked
        other = OpenAIChat("other", base_url=server.url)
        assert other.generate([ASKED])[0].text == "ok"


def test_calls_that_are_not_made_are_not_in_the_ledger(ledger):
    with openai_server(lambda _: DOWN) as server:
        model = MeteredChat(model_of(server, 1, concurrency=1), "openai:tiny", ledger, "v")
        replies = model.generate([ASKED] * 3 * CALLS)
    assert len(replies) == 3 * CALLS
    assert ledger.used().calls == CALLS
    assert {caller: n for caller, n, _ in ledger.calls()} == {Caller("v", "", "openai:tiny"): CALLS}


def test_an_embedding_model_that_hangs_is_given_up_for_all_variants(ledger, monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", "AIzaHunter2Secret")
    with gemini_server(lambda _: HANGS) as server:
        for _ in range(5):  # each variant's kernel builds the index anew
            model = GeminiEmbedder("gemini-embedding-001", base_url=server.url, timeout_s=0.1)
            model.retry = RetryPolicy(5, sleep=lambda _: None)
            with pytest.raises(ModelError) as caught:
                model.embed_documents(["a"])
        n_asked = len(server.bodies)
    assert n_asked <= TIME_OUTS
    assert "gemini:gemini-embedding-001 was given up for now" in str(caught.value)
