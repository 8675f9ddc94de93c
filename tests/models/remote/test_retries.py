"""A model that is down or silent costs a bounded number of attempts, whoever asks."""

import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from loopback_models import Scripted, gemini_server, openai_server
from postgres import needs_postgres, postgres_server

from rag_lab.errors import ModelError
from rag_lab.memory.ledger import LEDGER_VARIABLE, Caller, Ledger
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.remote import retries
from rag_lab.models.remote.embedders import GeminiEmbedder
from rag_lab.models.remote.openai import OpenAIChat
from rag_lab.models.remote.retries import (
    CALLS,
    TIME_OUTS,
    CallFailed,
    CircuitBreaker,
    Rates,
    RetryPolicy,
    in_parallel,
    open_breaker_sentences,
)
from rag_lab.models.shared import MeteredChat, chat_model


class RefusedError(Exception):
    def __init__(self, status, wait=None):
        self.status_code = status
        self.headers = {} if wait is None else {"retry-after": str(wait)}
        self.response = self

    def __str__(self):
        return "refused"


def fresh():
    return CircuitBreaker({"provider": "test", "name": "model"})


def failing(*errors):
    """A function that raises these errors, one a call, and then returns `done`."""
    left = list(errors)

    def function():
        if left:
            raise left.pop(0)
        return "done"

    return function


def test_waits_double_with_a_little_jitter():
    waits = []
    policy = RetryPolicy(5, waits.append)
    assert policy.call("model", failing(*[RefusedError(500)] * 4), fresh()) == "done"
    for wait, base in zip(waits, [1, 2, 4, 8], strict=True):
        assert base <= wait <= base * 1.25


def test_the_server_says_how_long_to_wait():
    waits = []
    refused = failing(RefusedError(429, 7), RefusedError(503, 0))
    policy = RetryPolicy(3, waits.append, clock=lambda: 1_000.0 + sum(waits))
    assert policy.call("model", refused, fresh()) == "done"
    assert waits[:2] == [7, 0]


def test_it_gives_up_after_the_last_attempt():
    waits = []
    with pytest.raises(CallFailed, match="status 503: refused after 3 attempts") as caught:
        RetryPolicy(3, waits.append).call("model", failing(*[RefusedError(503)] * 9), fresh())
    assert caught.value.transient
    assert len(waits) == 2


@pytest.mark.parametrize(("error", "transient"), [(RefusedError(400), False), (RefusedError(429, 3600), True)])
def test_what_waiting_cannot_cure_is_not_tried_again(error, transient):
    waits = []
    with pytest.raises(CallFailed) as caught:
        RetryPolicy(5, waits.append).call("model", failing(error), fresh())
    assert (caught.value.transient, waits) == (transient, [])


def test_a_rejected_key_ends_everything():
    with pytest.raises(ModelError, match="model: the key was rejected"):
        RetryPolicy(5, lambda wait: None).call("model", failing(RefusedError(401)), fresh())


def test_order_is_kept_and_concurrency_bounded():
    running, most, lock = 0, 0, threading.Lock()
    gate = threading.Barrier(3)  # passes only if three really run at once

    def work(number):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        gate.wait(timeout=10)
        with lock:
            running -= 1
        return number * 2

    assert in_parallel(work, range(9), 3) == [number * 2 for number in range(9)]
    assert most == 3


def test_the_first_error_stops_what_has_not_begun():
    begun = []

    def work(number):
        begun.append(number)
        raise ModelError("rejected")

    with pytest.raises(ModelError):
        in_parallel(work, range(1000), 1)
    assert len(begun) < 1000
    assert in_parallel(work, [], 4) == []


CAPITAL = ChatRequest((Message("user", "Capital of France?"),), max_tokens=9)
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
        replies = model_of(server, 5, concurrency=concurrency, timeout_s=0.1).generate([CAPITAL] * 40)
        n_asked = len(server.bodies)
    assert n_asked <= TIME_OUTS + concurrency - 1
    assert all(reply.transient for reply in replies)
    assert re.search(r"^openai:tiny was given up for now: \d+ attempts in a row timed out", replies[-1].error)
    assert "did not answer" in replies[-1].error
    assert (replies[0].asked, replies[-1].asked, replies[-1].seconds) == (True, False, 0.0)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_calls_that_fail_in_a_row_end_it_too(concurrency):
    with openai_server(lambda _: DOWN) as server:
        replies = model_of(server, concurrency=concurrency).generate([CAPITAL] * 60)
        n_asked = len(server.bodies)
    assert 2 * CALLS <= n_asked <= 2 * (CALLS + concurrency - 1)
    said = r"given up for now: \d+ calls in a row failed, the last one because the server answered with status 500"
    assert re.search(said, replies[-1].error)


@pytest.mark.parametrize("good", ["Paris.", Scripted("too long", status=400)])
def test_an_answer_counts_from_zero_again(good):
    with openai_server(([DOWN] * (CALLS - 1) + [good]) * 3) as server:
        replies = model_of(server, 1, concurrency=1).generate([CAPITAL] * 3 * CALLS)
    assert all(reply.asked for reply in replies)
    assert sum(reply.transient for reply in replies) == 3 * (CALLS - 1)


def test_by_hand_it_is_asked_again_after_a_rest_and_one_more_failure_is_enough(monkeypatch):
    with openai_server([DOWN] * (CALLS + 1)) as server:
        model = model_of(server, 1, concurrency=1)
        assert "asked again 2 minutes later" in model.generate([CAPITAL] * (CALLS + 1))[-1].error
        monkeypatch.setattr(retries, "REST_S", -1.0)
        assert "status 500" in model.generate([CAPITAL])[0].error
        monkeypatch.undo()
        assert not model.generate([CAPITAL])[0].asked
        monkeypatch.setattr(retries, "REST_S", -1.0)
        assert [reply.text for reply in model.generate([CAPITAL] * 2)] == ["ok", "ok"]
        monkeypatch.undo()
        assert model.generate([CAPITAL])[0].text == "ok"


def test_the_kernels_of_a_sweep_share_what_they_have_seen_until_its_next_start(ledger):
    with openai_server([DOWN] * CALLS) as server:
        model_of(server, 1, concurrency=1).generate([CAPITAL] * (CALLS - 1))
        replies = model_of(server, 1, concurrency=1).generate([CAPITAL] * 2)
        assert [reply.asked for reply in replies] == [True, False]
        assert "the same command goes on" in replies[1].error
        assert not model_of(server).generate([CAPITAL])[0].asked
        [told] = open_breaker_sentences(ledger)
        assert told.startswith(f"openai:tiny was given up for now: {CALLS} calls in a row failed, the last one because")
        ledger.start(None, None, None)
        assert model_of(server).generate([CAPITAL])[0].text == "ok"
        assert open_breaker_sentences(ledger) == []


def test_one_model_given_up_leaves_the_others(ledger):
    with openai_server(lambda body: "ok" if body["model"] == "other" else DOWN) as server:
        assert not model_of(server).generate([CAPITAL] * 2 * CALLS)[-1].asked
        other = OpenAIChat("other", base_url=server.url)
        assert other.generate([CAPITAL])[0].text == "ok"


def test_calls_that_are_not_made_are_not_in_the_ledger(ledger):
    with openai_server(lambda _: DOWN) as server:
        model = MeteredChat(model_of(server, 1, concurrency=1), "openai:tiny", ledger, "v")
        replies = model.generate([CAPITAL] * 3 * CALLS)
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


ASKED = ChatRequest((Message("user", "Where?"),))
ANOTHER_PROCESS = """
from rag_lab.models.remote.retries import Rates
from rag_lab.models.remote.retries import RetryPolicy
waits = []
RetryPolicy(rates=Rates(requests=2), sleep=waits.append).wait("a model", "m", 0)
print(*waits)
"""


def test_another_process_waits_for_what_this_one_has_sent():
    waits = []
    for _ in range(2):
        RetryPolicy(rates=Rates(requests=2), sleep=waits.append).wait("a model", "m", 0)
    assert waits == []
    told = subprocess.run([sys.executable, "-c", ANOTHER_PROCESS], capture_output=True, text=True, check=True).stdout
    assert 30 < float(told) <= 60


def test_nobody_asks_while_a_server_that_was_asked_too_often_wants_rest():
    times = []

    def script(body):
        times.append(time.monotonic())
        return Scripted(status=429, headers={"Retry-After": "1"}) if len(times) == 1 else "ok"

    with openai_server(script) as server:
        models = [OpenAIChat("tiny", base_url=server.url) for _ in range(3)]
        first = ThreadPoolExecutor().submit(models[0].generate, [ASKED])
        while not times:
            time.sleep(0.01)
        time.sleep(0.2)
        with ThreadPoolExecutor() as pool:
            others = list(pool.map(lambda model: model.generate([ASKED])[0], models[1:]))
        assert [reply.text for reply in (*first.result(), *others)] == ["ok"] * 3
    assert all(later - times[0] >= 1 for later in times[1:])


MANY, CALL_S = 132, 0.5


@pytest.mark.parametrize("headers", [{"Retry-After": "1"}, {}])
def test_a_server_that_refuses_one_call_in_twenty_costs_little_more_than_these_calls(headers):
    """Seconds are counted, not taken: those that a reply takes, and those that are waited."""
    seconds, n_asked = [0.0], 0

    def script(body):
        nonlocal n_asked
        n_asked += 1
        if n_asked % 20 == 7:
            return Scripted(status=429, headers=headers)
        seconds.append(CALL_S)
        return "ok"

    with openai_server(script) as server:
        model = OpenAIChat("tiny", base_url=server.url, concurrency=1)
        model.retry = replace(model.retry, sleep=seconds.append, clock=lambda: 1_000.0 + sum(seconds))
        replies = model.generate([ASKED] * MANY)
    assert [reply.text for reply in replies] == ["ok"] * MANY
    assert n_asked > MANY
    assert sum(seconds) <= 1.3 * MANY * CALL_S


def test_what_a_server_takes_is_an_option_of_the_name_and_no_part_of_the_identity():
    plain, limited = (
        chat_model(f"openai:tiny?base_url=http://127.0.0.1:9/v1{more}") for more in ("", "&requests_per_minute=5")
    )
    assert limited.retry.rates == Rates(requests=5)
    assert limited.identity() == plain.identity()


@pytest.mark.parametrize("given", ["0", "many", "-1"])
def test_an_impossible_rate_is_a_sentence(given):
    with pytest.raises(Exception, match="requests_per_minute must be a whole number of at least 1"):
        chat_model(f"gemini:gemini-2.5-flash?requests_per_minute={given}")


ANOTHER_MACHINE = """
import sys, time
ahead_s, url = float(sys.argv[1]), sys.argv[2]
true_time = time.time
time.time = lambda: true_time() + ahead_s
from rag_lab.models.remote import retries
retries.WINDOW_S = 3.0
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.shared import chat_model
model = chat_model(f"openai:tiny?base_url={url}&requests_per_minute=4&concurrency=4")
replies = model.generate([ChatRequest((Message("user", f"{ahead_s} {n}"),)) for n in range(5)])
print(*[reply.error or reply.text for reply in replies], sep=";")
"""


@pytest.mark.slow
@needs_postgres
def test_workers_whose_clocks_differ_keep_a_servers_limit_together(tmp_path):
    """Each has a home of its own; what is shared is the store. A minute lasts three seconds there."""
    arrived, refused = [], []

    def script(body):
        arrived.append(time.monotonic())
        if len(arrived) == 3:
            refused.append(arrived[-1])
            return Scripted(status=429, headers={"Retry-After": "2"})
        return "ok"

    with postgres_server() as store, openai_server(script) as server:
        environment = {**os.environ, "RAG_LAB_STORE": store.address()}
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", ANOTHER_MACHINE, ahead_s, server.url],
                stdout=subprocess.PIPE,
                text=True,
                env={**environment, "RAG_LAB_HOME": str(tmp_path / ahead_s)},
            )
            for ahead_s in ("0", "3600")
        ]
        told = [one.communicate(timeout=120)[0].strip() for one in workers]
    assert told == ["ok;ok;ok;ok;ok"] * 2
    assert len(arrived) == 11
    # Four were let through before the server refused one; a pause and whole windows lie between those and the last.
    assert sum(at < refused[0] + 1 for at in arrived) <= 4
    assert arrived[-1] - arrived[0] > 5
