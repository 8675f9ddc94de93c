"""Every built-in model keeps to the contract of its kind. A new one is one line in a table."""

from contextlib import contextmanager

import pytest
from loopback_models import Scripted, gemini_server, ollama_server, openai_server, rerank_server

from rag_lab.models.local.causal import QueryLikelihoodScorer
from rag_lab.models.local.late_interaction import MaxSimScorer
from rag_lab.models.local.llamacpp import LlamaCppChat
from rag_lab.models.local.sentence_transformers import CrossEncoderScorer, SentenceTransformerEmbedder
from rag_lab.models.local.transformers import TransformersChat
from rag_lab.models.protocols import ChatReply
from rag_lab.models.remote import embedders, rerankers
from rag_lab.models.remote.gemini import GeminiChat
from rag_lab.models.remote.ollama import OllamaChat
from rag_lab.models.remote.openai import OpenAIChat
from rag_lab.testing import (
    ChatModelContract,
    EmbedderContract,
    HashEmbedder,
    OverlapScorer,
    PairScorerContract,
    ScriptedChat,
)

KEYS = ("OPENAI_API_KEY", "GOOGLE_API_KEY", "CO_API_KEY", "JINA_API_KEY")


def scripted(asked):
    text = asked.messages[-1].content
    return ChatReply(error="too long") if text.startswith("TOO LONG") else f"You said: {text}"


def served(server_of, kind, name, text_of):
    """A chat model whose server repeats the question, or fails."""

    def answer(body):
        text = text_of(body)
        return Scripted("too long", status=400) if text.startswith("TOO LONG") else f"You said: {text}"

    @contextmanager
    def built(request):
        with server_of(answer) as server:
            yield kind(name, base_url=server.url)

    return built


def batched(server_of, kind, name="tiny"):
    """An embedder or a scorer behind a server, two texts or passages a call."""

    @contextmanager
    def built(request):
        with server_of() as server:
            yield kind(name, base_url=server.url, batch_size=2)

    return built


def local(build):
    """A model of this process; `build` gets what returns the path of a fixture."""

    @contextmanager
    def built(request):
        yield build(lambda name: str(request.getfixturevalue(name)))

    return built


CHAT = {
    "scripted": local(lambda path: ScriptedChat(scripted)),
    "openai": served(openai_server, OpenAIChat, "tiny", lambda body: body["messages"][-1]["content"]),
    "ollama": served(ollama_server, OllamaChat, "tiny", lambda body: body["messages"][-1]["content"]),
    "gemini": served(
        gemini_server, GeminiChat, "gemini-2.5-flash", lambda body: body["contents"][-1]["parts"][0]["text"]
    ),
    "transformers": local(lambda path: TransformersChat(path("tiny_causal"), device="cpu", batch_size=3)),
    "llamacpp": local(lambda path: path("real_home") and LlamaCppChat("smollm2", context=512)),
}
EMBEDDING = {
    "hashed": local(lambda path: HashEmbedder()),
    "minilm": local(lambda path: SentenceTransformerEmbedder("minilm", device="cpu")),
    "gemini": batched(gemini_server, embedders.GeminiEmbedder, "gemini-embedding-001"),
    "ollama": batched(ollama_server, embedders.OllamaEmbedder),
    "openai": batched(openai_server, embedders.OpenAIEmbedder),
}
SCORING = {
    "overlap": local(lambda path: OverlapScorer()),
    "cross_encoder": local(lambda path: CrossEncoderScorer(path("tiny_cross_encoder"), device="cpu")),
    "maxsim": local(lambda path: MaxSimScorer("minilm", device="cpu")),
    "query_likelihood": local(lambda path: QueryLikelihoodScorer(path("tiny_causal"), device="cpu")),
    "tei": batched(rerank_server, rerankers.TeiScorer),
    "vllm": batched(rerank_server, rerankers.VllmScorer),
    "cohere": batched(rerank_server, rerankers.CohereScorer),
    "jina": batched(rerank_server, rerankers.JinaScorer),
}


def each(table):
    slow = {"llamacpp": pytest.mark.slow}
    params = [pytest.param(build, id=name, marks=slow.get(name, ())) for name, build in table.items()]

    @pytest.fixture(autouse=True, params=params)
    def _each(self, request, monkeypatch):
        for name in KEYS:
            monkeypatch.setenv(name, "hunter2secret")
        with request.param(request) as built:
            self.make = lambda: built
            yield

    return _each


class TestChatModels(ChatModelContract):
    too_long = "TOO LONG " + "grease " * 2000
    _each = each(CHAT)


class TestEmbedders(EmbedderContract):
    _each = each(EMBEDDING)


class TestPairScorers(PairScorerContract):
    _each = each(SCORING)
