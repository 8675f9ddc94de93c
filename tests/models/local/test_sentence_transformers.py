import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tolerance import FLOAT32

from rag_lab.errors import ModelError
from rag_lab.models.local.local_model import even_batches
from rag_lab.models.local.sentence_transformers import CrossEncoderScorer, SentenceTransformerEmbedder, StaticEmbedder
from rag_lab.models.providers import EMBEDDERS
from rag_lab.models.shared import missing_requirement
from rag_lab.models.weights import packaged

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


@given(st.lists(st.integers(1, 300), min_size=1), st.integers(1, 40))
def test_batches_hold_each_text_once_and_little_padding(lengths, most):
    batches = even_batches(lengths, most)
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    for batch in batches:
        assert 1 <= len(batch) <= most
        assert sum(lengths[place] for place in batch) >= 0.9 * max(lengths[place] for place in batch) * len(batch)


def test_the_identity_follows_the_weights(minilm):
    identity = minilm.identity()
    assert identity["name"] == "minilm"
    assert identity["weights"].startswith("folder-sha256:")


def test_a_hub_name_without_network_is_one_sentence(monkeypatch):
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match="Cannot load 'BAAI/bge-m3' .*network.*minilm"):
        SentenceTransformerEmbedder("bge-m3").embed_queries(["x"])
    with pytest.raises(ModelError, match="Cannot load 'BAAI/bge-reranker-v2-m3'"):
        CrossEncoderScorer("bge-reranker-v2-m3").score(PAIRS[:1])


def test_a_text_has_the_mean_of_its_tokens_vectors(tmp_path):
    """A folder as model2vec writes it, with a token that counts double and one that shares a row."""
    words = {"<unk>": 0, "press": 1, "oven": 2, "bar": 3}
    tokenizer = Tokenizer(WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text('{"model_type": "model2vec"}')
    rows = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], np.float16)
    table = {"embeddings": rows, "mapping": np.array([0, 1, 2, 1]), "weights": np.array([0, 1, 2, 1], np.float32)}
    save_file(table, tmp_path / "model.safetensors")
    found = StaticEmbedder(str(tmp_path)).embed_documents(["press bar", "press oven", "press " * 3000 + "oven", ""])
    expected = [[1, 0, 0], [5**-0.5, 2 * 5**-0.5, 0], [1, 0, 0], [0, 0, 0]]
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert missing_requirement(EMBEDDERS, f"static:{tmp_path}") == ""


def test_a_transformer_is_no_static_model():
    sentence = "minilm has no table of token vectors; give wordllama, or a model of model2vec"
    assert missing_requirement(EMBEDDERS, "static:minilm").startswith(sentence)
    with pytest.raises(ModelError, match=sentence):
        StaticEmbedder("minilm").embed_queries(["x"])


def test_the_packaged_static_model_embeds():
    pytest.importorskip("wordllama")
    question, *passages = StaticEmbedder("wordllama").embed_documents(
        ["pressure", "The press runs at 140 bar.", "Lunch"]
    )
    assert passages[0] @ question > passages[1] @ question + 0.1


def test_a_folder_that_holds_no_model_is_one_sentence(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="Cannot load the weights") as caught:
        SentenceTransformerEmbedder(str(tmp_path)).embed_queries(["x"])
    assert "\n" not in str(caught.value)


PASSAGES = [
    "the press runs at 140 bar .",
    "the filter of the oven is changed monthly by maintenance .",
    "grease .",
    "ram guides need grease every 500 hours and when the press runs at 140 bar . " * 3,
    "unknown words alone",
]
PAIRS = [
    (question, passage) for question in ("what pressure ?", "how often is the filter changed ?") for passage in PASSAGES
]


@pytest.fixture(scope="module")
def scorer(tiny_cross_encoder):
    return CrossEncoderScorer(str(tiny_cross_encoder), device="cpu", batch_size=4)


def test_scores_are_those_of_the_model_itself(scorer, tiny_cross_encoder):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_cross_encoder)
    model = AutoModelForSequenceClassification.from_pretrained(tiny_cross_encoder).eval()
    expected = []
    for question, passage in PAIRS:
        with torch.no_grad():
            logits = model(**tokenizer(question, passage, return_tensors="pt", truncation=True, max_length=64)).logits
        expected.append(torch.sigmoid(logits).item())
    assert scorer.score(PAIRS) == pytest.approx(expected, abs=1e-4)
    assert len(set(expected)) > 5


def test_a_pair_has_one_score_in_any_batch_and_order(scorer):
    together = scorer.score(PAIRS)
    assert together == [round(score, 6) for score in together]  # before anything is ordered by them
    assert together == pytest.approx([scorer.score([pair])[0] for pair in PAIRS], rel=FLOAT32, abs=FLOAT32)
    assert scorer.score(PAIRS[::-1])[::-1] == pytest.approx(together, rel=FLOAT32, abs=FLOAT32)
    assert scorer.score([]) == []


def test_max_tokens_cuts_the_passage(tiny_cross_encoder):
    short = CrossEncoderScorer(str(tiny_cross_encoder), device="cpu", max_tokens=16)
    question, long = "what pressure ?", PASSAGES[3]
    assert short.score([(question, long)]) == pytest.approx(short.score([(question, f"{long} oven")]), abs=FLOAT32)


def test_a_classifier_is_refused(tiny_classifier):
    with pytest.raises(ModelError, match="gives 3 scores a pair"):
        CrossEncoderScorer(str(tiny_classifier)).score(PAIRS[:1])


def test_a_span_is_the_mean_of_its_tokens_within_the_text_and_a_long_text_is_read_in_windows():
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder, embedder = packaged("minilm"), SentenceTransformerEmbedder("minilm", device="cpu")
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    text = "The press runs at 140 bar. Its guides take grease NLGI 2."
    read = tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
    offsets = read.pop("offset_mapping")[0].tolist()
    with torch.no_grad():
        rows = model(**read).last_hidden_state[0].numpy()
    spans = [(0, 26), (27, len(text))]
    expected = np.stack([sum(r for r, (a, b) in zip(rows, offsets, strict=True) if s <= a < b <= e) for s, e in spans])
    found = embedder.embed_spans(text, spans)
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-5)
    lines = [f"Step {number} of the guide sets valve {number * 7} to {number} bar." for number in range(60)]
    bounds = [0, *(end + 1 for end in np.cumsum([len(line) + 1 for line in lines])[:-1] - 1)]
    long, spans = "\n".join(lines), [(start, start + len(line)) for start, line in zip(bounds, lines, strict=True)]
    assert sum(embedder.text_tokens([long], "document")) > 2 * embedder.most_tokens
    far, near = (long.replace(lines[number], lines[number].upper().replace("BAR", "PSI")) for number in (0, 58))
    whole, other, beside = (embedder.embed_spans(one, spans) for one in (long, far, near))
    assert np.allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-5)
    assert whole[59] @ other[59] > 0.999 > whole[59] @ beside[59]
