"""Replies heard while they are written: over HTTP, the same as the whole reply, and nothing that it would not show."""

import json

import pytest
from loopback_models import Scripted, gemini_server, ollama_server, openai_server

from rag_lab.models.protocols import LISTENER, ChatRequest, Message
from rag_lab.models.remote.gemini import GeminiChat
from rag_lab.models.remote.ollama import OllamaChat
from rag_lab.models.remote.openai import OpenAIChat
from rag_lab.models.remote.retries import RetryPolicy

ASKED = ChatRequest((Message("user", "Capital of France?"),), max_tokens=30)
PARIS = "Paris is the capital of France."


def heard_and_reply(model, request=ASKED):
    heard = []
    model.retry = RetryPolicy(3, lambda wait_s: None)
    token = LISTENER.set(heard.append)
    try:
        (reply,) = model.generate([request])
    finally:
        LISTENER.reset(token)
    return heard, reply


@pytest.fixture(params=["openai", "gemini", "ollama"])
def served(request, monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", "AIza-a-key-of-nobody")
    kinds = {
        "openai": (openai_server, OpenAIChat, "tiny"),
        "gemini": (gemini_server, GeminiChat, "gemini-2.0-flash"),
        "ollama": (ollama_server, OllamaChat, "tiny"),
    }
    serve, model, name = kinds[request.param]
    return serve, lambda server: model(name, base_url=server.url, concurrency=1)


def test_what_is_heard_grows_into_the_reply_that_a_whole_call_gives(served):
    serve, model = served
    with serve([PARIS, PARIS]) as server:
        heard, streamed = heard_and_reply(model(server))
        (whole,) = model(server).generate([ASKED])
    assert len(heard) > 3
    assert all(after.startswith(before) for before, after in zip(heard, heard[1:], strict=False))
    assert heard[-1] == streamed.text == PARIS
    for name in ("text", "tokens_in", "tokens_out", "cost_usd", "truncated", "error"):
        assert getattr(streamed, name) == getattr(whole, name)


def test_a_stream_that_is_cut_short_is_asked_for_again_as_a_whole(served):
    serve, model = served
    with serve([Scripted(PARIS, dies_after=300), PARIS]) as server:
        heard, reply = heard_and_reply(model(server))
    assert (reply.text, reply.error, len(server.bodies)) == (PARIS, "", 2)
    assert not server.bodies[1].get("stream")
    assert "streamGenerateContent" not in server.paths[1]


def test_a_secret_is_never_heard(served, monkeypatch):
    serve, model = served
    monkeypatch.setenv("OPENAI_API_KEY", "sk-verysecretverysecret")
    with serve(["The key is sk-verysecretverysecret and that is all."]) as server:
        heard, reply = heard_and_reply(model(server))
    assert "sk-verysecretverysecret" not in heard[-1] + reply.text


def test_reasoning_that_comes_with_a_stream_is_kept():
    with openai_server([Scripted("four", thinking="2+2")]) as server:
        heard, reply = heard_and_reply(OpenAIChat("tiny", base_url=server.url))
    assert (heard[-1], reply.text, reply.thinking) == ("four", "four", "2+2")


def test_events_that_end_before_the_reply_are_no_reply():
    event = json.dumps({"choices": [{"index": 0, "delta": {"content": "Paris is"}}]})
    cut = Scripted(raw=f"data: {event}\n\n", headers={"Content-Type": "text/event-stream"})
    with openai_server([cut, PARIS]) as server:
        _, reply = heard_and_reply(OpenAIChat("tiny", base_url=server.url))
    assert (reply.text, [body.get("stream") for body in server.bodies]) == (PARIS, [True, False])


def test_a_stream_without_end_is_no_reply():
    event = json.dumps({"choices": [{"index": 0, "delta": {"content": "la " * 1000}}]})
    endless = Scripted(raw=f"data: {event}\n\n", headers={"Content-Type": "text/event-stream"}, endless=True)
    with openai_server([endless] * 3) as server:
        _, reply = heard_and_reply(OpenAIChat("tiny", base_url=server.url))
    assert reply.transient


THOUGHT = "one two three four five six"


@pytest.mark.parametrize("budget", [3, 8, 100])
def test_of_a_model_that_thinks_the_text_alone_is_heard_in_both_calls_that_end_a_thought(budget):
    asked = ChatRequest(ASKED.messages, max_tokens=30, thinking_tokens=budget, json_schema={"type": "object"})
    with ollama_server(lambda body: Scripted(PARIS, thinking=THOUGHT)) as server:
        heard, streamed = heard_and_reply(OllamaChat("tiny", base_url=server.url), asked)
        n_calls = len(server.bodies)
        (whole,) = OllamaChat("tiny", base_url=server.url).generate([asked])
    assert n_calls == (1 if budget == 100 else 2)
    assert [body["stream"] for body in server.bodies] == [True] * n_calls + [False] * n_calls
    assert all(PARIS.startswith(text) for text in heard)
    assert heard[-1] == PARIS
    for name in ("text", "thinking", "thinking_tokens", "tokens_in", "tokens_out", "truncated", "error"):
        assert getattr(streamed, name) == getattr(whole, name), name


@pytest.mark.parametrize(
    "raw",
    [
        '{"message": {"role": "assistant", "content": "Paris is"}, "done": false}\n',
        '{"error": "the runner ended"}\n',
        '{"message": {"role": "assistant", "content": "Paris is"}, "done": false}\n<html>',
        "[1]\n",
        '{"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "load"}\n',
        "",
    ],
)
def test_lines_that_are_no_whole_reply_are_asked_for_again_and_never_believed(raw):
    broken = Scripted(raw=raw, headers={"Content-Type": "application/x-ndjson"})
    with ollama_server([broken, PARIS]) as server:
        _, reply = heard_and_reply(OllamaChat("tiny", base_url=server.url))
    assert (reply.text, reply.error) == (PARIS, "")
    assert [body["stream"] for body in server.bodies] == [True, False]
