import numpy as np
import pytest
from pytest import approx
from tolerance import FLOAT32

from rag_lab.errors import ModelError
from rag_lab.models.remote.embedders import GeminiEmbedder
from rag_lab.models.remote.requests import RetryPolicy
from rag_lab.testing import HashEmbedder, Scripted, gemini_server


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", "AIzaHunter2Secret")


def test_batches_come_back_in_order_as_unit_vectors():
    texts = [f"text number {number}" for number in range(7)]
    with gemini_server() as server:
        rows = GeminiEmbedder("gemini-embedding-001", base_url=server.url, batch_size=2).embed_documents(texts)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, HashEmbedder(16).embed_documents(texts), atol=FLOAT32)
    assert len(server.bodies) == 4


def test_documents_and_questions_are_told_apart():
    with gemini_server() as server:
        model = GeminiEmbedder("gemini-embedding-001", base_url=server.url)
        model.embed_documents(["a"])
        model.embed_queries(["a"])
    assert [body["requests"][0]["taskType"] for body in server.bodies] == ["RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"]


def test_failures_are_tried_again_and_then_reported():
    waits = []
    with gemini_server([Scripted(status=429, headers={"Retry-After": "5"})] + [Scripted(status=503)] * 9) as server:
        model = GeminiEmbedder("gemini-embedding-001", base_url=server.url)
        model.retry = RetryPolicy(3, waits.append)
        with pytest.raises(ModelError, match="status 503.*after 3 attempts") as caught:
            model.embed_documents(["a"])
    assert (waits[0], len(server.bodies)) == (approx(5, abs=1), 3)
    assert "Hunter2" not in str(caught.value)


def test_a_time_out_is_a_failure():
    with gemini_server([Scripted(delay_s=0.6)] * 3) as server:
        model = GeminiEmbedder("gemini-embedding-001", base_url=server.url, timeout_s=0.2, max_attempts=1)
        with pytest.raises(ModelError, match="did not answer"):
            model.embed_documents(["a"])
