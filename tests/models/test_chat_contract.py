"""What every chat model promises. A new one is tested by adding a line to `BUILDERS`."""

import json
from contextlib import contextmanager

import pytest

from rag_lab.models.local.llamacpp import LlamaCppChat
from rag_lab.models.local.transformers import TransformersChat
from rag_lab.models.protocols import ChatReply, ChatRequest, Message
from rag_lab.models.remote.gemini import GeminiChat
from rag_lab.models.remote.openai import OpenAIChat
from rag_lab.testing import Scripted, ScriptedChat, gemini_server, openai_server

KEY = "hunter2secret"


def _asked_of(text):
    """What a scripted model answers: the question itself, or a failure."""
    return Scripted("too long", status=400) if text.startswith("TOO LONG") else f"You said: {text}"


@contextmanager
def scripted(request):
    def reply(asked):
        text = asked.messages[-1].content
        return ChatReply(error="too long") if text.startswith("TOO LONG") else f"You said: {text}"

    yield ScriptedChat(reply)


@contextmanager
def openai(request):
    with openai_server(lambda body: _asked_of(body["messages"][-1]["content"])) as server:
        yield OpenAIChat("tiny", base_url=server.url)


@contextmanager
def gemini(request):
    with gemini_server(lambda body: _asked_of(body["contents"][-1]["parts"][0]["text"])) as server:
        yield GeminiChat("gemini-2.5-flash", base_url=server.url)


@contextmanager
def transformers(request):
    yield TransformersChat(str(request.getfixturevalue("tiny_causal")), device="cpu", batch_size=3)


@contextmanager
def llamacpp(request):
    request.getfixturevalue("real_home")
    yield LlamaCppChat("smollm2", context=512)


BUILDERS = [scripted, openai, gemini, transformers, pytest.param(llamacpp, marks=pytest.mark.slow)]


@pytest.fixture(params=BUILDERS)
def model(request, monkeypatch):
    for name in ("OPENAI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, KEY)
    with request.param(request) as built:
        yield built


def ask(text):
    return ChatRequest((Message("system", "the press"), Message("user", text)), max_tokens=8)


REQUESTS = [ask(text) for text in ("grease", "how often is the filter changed", "what pressure", "who", "oven")]


def test_one_reply_a_request_in_order(model):
    together = [reply.text for reply in model.generate(REQUESTS)]
    assert together == [model.generate([request])[0].text for request in REQUESTS]
    assert [reply.text for reply in model.generate(REQUESTS[::-1])][::-1] == together
    assert len(set(together)) > 1


def test_a_reply_counts_tokens_and_seconds(model):
    for reply in model.generate(REQUESTS[:2]):
        assert reply.error == ""
        assert reply.tokens_in > 0
        assert reply.tokens_out > 0
        assert reply.seconds >= 0


def test_a_request_that_cannot_be_answered_fails_alone(model):
    replies = model.generate([REQUESTS[0], ask("TOO LONG " + "grease " * 2000), REQUESTS[1]])
    assert [bool(reply.error) for reply in replies] == [False, True, False]
    assert replies[1].text == ""
    assert "\n" not in replies[1].error


def test_nothing_asked_is_nothing_answered(model):
    assert model.generate([]) == []


def test_the_identity_is_json_and_holds_no_secret(model):
    model.generate(REQUESTS[:1])
    text = json.dumps(model.identity())
    assert json.loads(text) == model.identity()
    assert KEY not in f"{text}{model!r}"


def test_tokens_are_counted_and_more_text_has_no_fewer(model):
    assert 0 < model.count_tokens("the press") <= model.count_tokens("the press runs at 140 bar")
    assert model.context_tokens > 0
    assert model.constrains_json in (True, False)
