"""Requests of several processes stand in one line before a server, which says when to go on."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from postgres import needs_postgres, postgres_server

from rag_lab.memory.rate_limits import Rates
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.remote.openai import OpenAIChat
from rag_lab.models.remote.requests import RateLimiter
from rag_lab.models.shared import chat_model
from rag_lab.testing import Scripted, openai_server

ASKED = ChatRequest((Message("user", "Where?"),))
ANOTHER_PROCESS = """
from rag_lab.memory.rate_limits import Rates
from rag_lab.models.remote.requests import RateLimiter
waits = []
RateLimiter("a model", "m", Rates(requests=2), sleep=waits.append).wait(0)
print(*waits)
"""


def test_another_process_waits_for_what_this_one_has_sent():
    waits = []
    for _ in range(2):
        RateLimiter("a model", "m", Rates(requests=2), sleep=waits.append).wait(0)
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


CALLS, CALL_S = 132, 0.5


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
        replies = model.generate([ASKED] * CALLS)
    assert [reply.text for reply in replies] == ["ok"] * CALLS
    assert n_asked > CALLS
    assert sum(seconds) <= 1.3 * CALLS * CALL_S


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
from rag_lab.memory import rate_limits
rate_limits.WINDOW_S = 3.0
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
