import json
import struct

import numpy as np
import pytest
from loopback_models import ollama_server
from tiny_models import write_tiny_gguf

from rag_lab.errors import ModelError
from rag_lab.models.local.gguf import stored_as
from rag_lab.models.model_card import Cache, Measured, ModelCard, folder_facts, model_card
from rag_lab.models.weights import packaged


def test_the_packaged_model():
    card = model_card("llamacpp:smollm2")
    assert card.parameters == 134_515_008
    assert (card.stored_as, card.licence, card.trained_tokens, card.context_tokens) == (
        "Q8_0",
        "apache-2.0",
        8192,
        4096,
    )
    assert (card.thinks, card.sees, card.keeps_schema) == (False, False, True)
    assert card.cache == Cache(layers=30, kv_heads=3, head_dim=64, bits=16)
    assert card.cache_mb == 2 * 30 * 3 * 64 * 4096 * 2 / 2**20 == 90
    assert card.memory_mb == card.weights_mb + 90


def test_options_change_what_it_needs():
    plain = model_card("llamacpp:smollm2?weights=given")
    small = model_card("llamacpp:smollm2?weights=q4_0&kv=q8_0&context=8192", batch=4)
    assert plain.stored_as == "Q4_1"
    assert plain.weights_mb * 2**20 == pytest.approx(packaged("smollm2").stat().st_size, rel=0.03)  # and its vocabulary
    assert small.weights_mb < plain.weights_mb
    assert small.cache_mb == pytest.approx(90 * 2 * 4 * 8.5 / 16)


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["q4_0", "f16"])
def test_the_weights_foretold_are_those_of_the_file(real_home, weights):
    source = packaged("smollm2")
    vocabulary_mb = source.stat().st_size / 2**20 - model_card("llamacpp:smollm2?weights=given").weights_mb
    file_mb = stored_as(source, weights).stat().st_size / 2**20
    assert model_card(f"llamacpp:smollm2?weights={weights}").weights_mb + vocabulary_mb == pytest.approx(
        file_mb, abs=0.1
    )


def write_folder(folder, **config):
    folder.mkdir()
    values = np.zeros((4, 8), np.float16).tobytes()
    head = {
        "__metadata__": {"format": "pt"},
        "plain": {"dtype": "F16", "shape": [4, 8], "data_offsets": [0, 64]},
        "packed": {"dtype": "U8", "shape": [100, 1], "data_offsets": [0, 64]},
    }
    encoded = json.dumps(head).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(encoded)) + encoded + values)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "README.md").write_text("---\nlicense: mit\n---\n# A model\n")
    return folder


def test_a_folder_tells_its_own(tmp_path):
    text = {
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "hidden_size": 32,
        "head_dim": 16,
    }
    folder = write_folder(tmp_path / "m", text_config={**text, "max_position_embeddings": 512}, vision_config={})
    (folder / "chat_template.jinja").write_text("{% if enable_thinking %}<think>{% endif %}")
    facts = folder_facts(folder)
    known = {"parameters": 32 + 2 * 100, "cache": Cache(2, 1, 16), "trained_tokens": 512, "licence": "mit"}
    assert facts == {**facts, **known, "thinks": True, "sees": True}
    card = model_card(f"transformers:{folder}?dtype=bfloat16")
    assert (card.bits, card.cache.bits, card.context_tokens) == (16, 16, 512)


def test_an_empty_folder_is_unknown_and_not_zero(tmp_path):
    facts = folder_facts(tmp_path)
    assert {key: value for key, value in facts.items() if value is not None} == {"disk_bytes": 0, "licence": ""}


def test_an_embedding_model_reads_what_it_is_set_to():
    card = model_card("sentence_transformers:minilm")
    assert (card.kind, card.context_tokens, card.trained_tokens, card.cache) == ("embedder", 256, 512, None)
    assert "Keeps a schema" not in str(card)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("gemini:gemini-2.5-flash", "Its weights are elsewhere"),
        ("vllm:BAAI/bge-reranker-v2-m3?base_url=http://127.0.0.1:9", "Its weights are elsewhere"),
        ("tei:tiny", "Its weights are elsewhere"),
        ("unsloth:qwen3-8b", "has not been downloaded"),
        ("ollama:llama3.2:3b?base_url=http://127.0.0.1:9", "No Ollama answers at http://127.0.0.1:9"),
    ],
)
def test_what_is_not_known_is_said(monkeypatch, tmp_path, model, said):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "none"))
    card = model_card(model)
    assert (card.parameters, card.memory_mb) == (None, None)
    assert any(said in note for note in card.notes)


def test_a_server_elsewhere_is_asked_where_it_is_and_no_other_is_missed(monkeypatch):
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    with ollama_server(models=("tiny:latest",), context_tokens=4096) as server:
        card = model_card(f"ollama:tiny?base_url={server.url}")
        assert not any("No Ollama answers" in note for note in card.notes)
        assert (card.disk_bytes, card.stored_as, card.trained_tokens) == (1_234_567, "Q4_K_M", 4096)
    assert model_card("openai:qwen3-8b?base_url=http://127.0.0.1:9/v1").notes == (
        "Its weights are elsewhere: size and memory are its server's.",
    )


def test_a_card_is_of_one_model():
    with pytest.raises(ModelError, match="of one model, and 2 are named"):
        model_card("ollama:qwen3:8b | llamacpp:smollm2")


def test_a_file_cut_short_is_one_sentence(tmp_path):
    path = tmp_path / "cut.gguf"
    path.write_bytes(packaged("smollm2").read_bytes()[:5000])
    with pytest.raises(ModelError, match=r"cut\.gguf is not a whole GGUF file"):
        model_card(f"llamacpp:{path}")


def test_it_shows_itself_and_nothing_from_outside_steers_what_shows_it():
    hostile = "<b>x</b>\x1b[31m"
    card = ModelCard(
        f"llamacpp:{hostile}", "chat model", licence=hostile, notes=(hostile,), measured=Measured(12.5, 1.5)
    )
    assert "12.5 tokens a second, 1.5 s to load" in str(card)
    assert "\x1b" not in str(card) + card._repr_html_()
    assert "<b>" not in card._repr_html_()
    assert max(map(len, str(model_card("llamacpp:smollm2")).splitlines())) <= 100


def test_a_context_beyond_what_the_weights_are_made_for_is_said(tmp_path):
    tiny = write_tiny_gguf(tmp_path / "tiny.gguf")
    told = str(model_card(f"llamacpp:{tiny}?context=4096"))
    assert "4,096 tokens, made for 2,048; beyond that its replies are worth nothing" in told
