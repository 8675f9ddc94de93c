"""What every embedding model promises. A new one is tested by adding a line to `BUILDERS`."""

import json
from contextlib import contextmanager

import numpy as np
import pytest
from tolerance import FLOAT32

from rag_lab.models.local.sentence_transformers import SentenceTransformerEmbedder
from rag_lab.models.remote.gemini_embeddings import GeminiEmbedder
from rag_lab.testing import HashEmbedder, gemini_server


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


@pytest.fixture(params=[hashed, minilm, gemini])
def model(request, monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", "hunter2secret")
    with request.param() as built:
        yield built


TEXTS = ["The press runs at 140 bar.", "grease", "The oven's filter is changed every month.", "grease"]


@pytest.mark.parametrize("side", ["embed_documents", "embed_queries"])
def test_unit_rows_in_order(model, side):
    embed = getattr(model, side)
    rows = embed(TEXTS)
    assert rows.shape[0] == 4
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=FLOAT32)
    np.testing.assert_allclose(rows, embed(TEXTS[::-1])[::-1], atol=FLOAT32)
    np.testing.assert_allclose(rows[1], rows[3], atol=FLOAT32)
    assert rows[0] @ rows[1] < 0.99


def test_nothing_to_embed_is_no_rows(model):
    assert model.embed_documents([]).shape[0] == 0
    assert model.embed_documents([]).ndim == 2


def test_the_identity_is_json_and_holds_no_secret(model):
    model.embed_queries(["x"])
    assert json.loads(json.dumps(model.identity())) == model.identity()
    assert "hunter2secret" not in f"{json.dumps(model.identity())}{model!r}"
