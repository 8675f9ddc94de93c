import numpy as np
import pytest
from tolerance import FLOAT32

from rag_lab.errors import ModelError
from rag_lab.models.local.sentence_transformers import SentenceTransformerEmbedder

TEXTS = ["The press runs at 140 bar.", "x", "The oven's filter is changed every month. " * 20, ""]


@pytest.fixture(scope="module")
def minilm():
    return SentenceTransformerEmbedder("minilm", device="cpu", batch_size=2)


def test_vectors_follow_meaning(minilm):
    question = minilm.embed_queries(["At which pressure does the press work?"])
    scores = question @ minilm.embed_documents(["The press runs at 140 bar.", "Lunch is at noon."]).T
    assert scores[0, 0] > scores[0, 1] + 0.2


def test_a_text_has_one_vector_in_any_batch(minilm):
    together = minilm.embed_documents(TEXTS)
    alone = np.concatenate([minilm.embed_documents([text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=FLOAT32)
    assert (minilm.embed_documents(TEXTS) == together).all()


def test_the_identity_follows_the_weights(minilm):
    identity = minilm.identity()
    assert identity["name"] == "minilm"
    assert identity["weights"].startswith("folder-sha256:")


def test_a_hub_name_without_network_is_one_sentence(monkeypatch):
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match="Cannot load 'BAAI/bge-m3' from the model hub.*network.*minilm"):
        SentenceTransformerEmbedder("bge-m3").embed_queries(["x"])


def test_a_folder_that_holds_no_model_is_one_sentence(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="Cannot load the weights") as caught:
        SentenceTransformerEmbedder(str(tmp_path)).embed_queries(["x"])
    assert "\n" not in str(caught.value)
