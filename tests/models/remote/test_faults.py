"""What a server does wrong means the same whichever provider's it is."""

import pytest
from pytest import approx

from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.remote.gemini import GeminiChat
from rag_lab.models.remote.ollama import OllamaChat
from rag_lab.models.remote.openai import OpenAIChat
from rag_lab.models.remote.requests import RetryPolicy
from rag_lab.testing import Scripted, gemini_server, ollama_server, openai_server

ASKED = ChatRequest((Message("user", "Capital of France?"),), max_tokens=9)
PROVIDERS = {
    "gemini": (gemini_server, GeminiChat, "gemini-2.5-flash"),
    "ollama": (ollama_server, OllamaChat, "tiny"),
    "openai": (openai_server, OpenAIChat, "tiny"),
}


@pytest.fixture(params=PROVIDERS)
def asked(request, monkeypatch):
    """Ask a model of each provider whose server gives these answers; return replies, waits and the server."""
    monkeypatch.setenv("GEMINI_API_KEY", "AIzaHunter2Secret")
    server_of, kind, name = PROVIDERS[request.param]

    def ask(answers, requests, attempts=3, **options):
        with server_of(answers) as server:
            model, waits = kind(name, base_url=server.url, **{"concurrency": 1, **options}), []
            model.retry = RetryPolicy(attempts, waits.append)
            return model.generate(requests), waits, server

    return ask


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (Scripted(status=500), "status 500"),
        (Scripted(status=429), "status 429"),
        (Scripted(raw="<html><title>Proxy</title>"), "a web page instead of JSON: Proxy"),
        (Scripted("late", delay_s=0.6), "did not answer"),
    ],
)
def test_our_attempts_are_all_the_attempts(asked, failure, said):
    (reply,), _, server = asked([failure] * 9, [ASKED], attempts=2, timeout_s=0.2)
    assert said in reply.error
    assert (reply.text, reply.transient, len(server.bodies)) == ("", True, 2)


@pytest.mark.parametrize("status", [429, 503])
def test_a_rate_limit_is_waited_for_as_asked(asked, status):
    (reply,), waits, server = asked([Scripted(status=status, headers={"Retry-After": "11"}), "Paris."], [ASKED])
    assert (reply.text, waits, len(server.bodies)) == ("Paris.", [approx(11, abs=1)], 2)


def test_a_bad_request_fails_alone_and_says_why(asked):
    replies, _, _ = asked(["one", Scripted("too long", status=400), "three"], [ASKED] * 3)
    assert [reply.text for reply in replies] == ["one", "", "three"]
    assert replies[1].error.startswith("the server answered with status 400: too long")
    assert not replies[1].transient
