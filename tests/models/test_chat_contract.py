"""Every chat model keeps to the contract of chat models. A new one is one line in `BUILDERS`."""

from contextlib import contextmanager

import pytest

from rag_lab.models.local.llamacpp import LlamaCppChat
from rag_lab.models.local.transformers import TransformersChat
from rag_lab.models.protocols import ChatReply
from rag_lab.models.remote.gemini import GeminiChat
from rag_lab.models.remote.ollama import OllamaChat
from rag_lab.models.remote.openai import OpenAIChat
from rag_lab.testing import ChatModelContract, Scripted, ScriptedChat, gemini_server, ollama_server, openai_server


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
def ollama(request):
    with ollama_server(lambda body: _asked_of(body["messages"][-1]["content"])) as server:
        yield OllamaChat("tiny", base_url=server.url)


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


BUILDERS = [scripted, openai, ollama, gemini, transformers, pytest.param(llamacpp, marks=pytest.mark.slow)]


class TestChatModels(ChatModelContract):
    too_long = "TOO LONG " + "grease " * 2000

    @pytest.fixture(autouse=True, params=BUILDERS)
    def _each(self, request, monkeypatch):
        for name in ("OPENAI_API_KEY", "GOOGLE_API_KEY"):
            monkeypatch.setenv(name, "hunter2secret")
        with request.param(request) as built:
            self.make = lambda: built
            yield
