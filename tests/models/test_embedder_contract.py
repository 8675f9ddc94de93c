"""Every embedding model keeps to the contract of embedding models."""

from contextlib import contextmanager

import pytest

from rag_lab.models.local.sentence_transformers import SentenceTransformerEmbedder
from rag_lab.models.remote.embedders import GeminiEmbedder, OllamaEmbedder, OpenAIEmbedder
from rag_lab.testing import EmbedderContract, HashEmbedder, gemini_server, ollama_server, openai_server


@contextmanager
def hashed():
    yield HashEmbedder()


@contextmanager
def minilm():
    yield SentenceTransformerEmbedder("minilm", device="cpu")


@contextmanager
def gemini():
    with gemini_server() as server:
        yield GeminiEmbedder("gemini-embedding-001", base_url=server.url, batch_size=2)


@contextmanager
def ollama():
    with ollama_server() as server:
        yield OllamaEmbedder("tiny", base_url=server.url, batch_size=2)


@contextmanager
def openai():
    with openai_server() as server:
        yield OpenAIEmbedder("tiny", base_url=server.url, batch_size=2)


class TestEmbedders(EmbedderContract):
    @pytest.fixture(autouse=True, params=[hashed, minilm, gemini, ollama, openai])
    def _each(self, request, monkeypatch):
        monkeypatch.setenv("GOOGLE_API_KEY", "hunter2secret")
        with request.param() as built:
            self.make = lambda: built
            yield
