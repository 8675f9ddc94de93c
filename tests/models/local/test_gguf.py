import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tiny_models import write_tiny_gguf

from rag_lab.errors import ModelError
from rag_lab.models.local import gguf as gguf_module
from rag_lab.models.local import llamacpp
from rag_lab.models.local.gguf import FAMILIES, TYPES, gguf_card, gguf_metadata, gguf_tokenizer, quantized, stored_as
from rag_lab.models.local.llama_server import LlamaCppServer
from rag_lab.models.local.llamacpp import LlamaCppChat
from rag_lab.models.protocols import ChatRequest
from rag_lab.models.weights import packaged

gguf = pytest.importorskip("gguf")
Q = gguf.GGMLQuantizationType


@pytest.fixture
def source(tmp_path):
    """A Q4_1 file with a list, a string, a number and a plain tensor beside the quantized one."""
    path = tmp_path / "small.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_array("tokenizer.ggml.tokens", ["a", "ü", "<|im_end|>"])
    writer.add_string("tokenizer.chat_template", "{{ messages }}")
    writer.add_float32("llama.rope.freq_base", 10000.0)
    writer.add_file_type(3)
    weights = np.random.default_rng(0).normal(size=(8, 64)).astype(np.float32)
    writer.add_tensor("blk.0.attn_q.weight", gguf.quants.quantize(weights, Q.Q4_1), raw_dtype=Q.Q4_1)
    writer.add_tensor("output_norm.weight", np.arange(64, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_fields_are_kept_and_values_nearly_so(source):
    before, after = gguf.GGUFReader(source), gguf.GGUFReader(stored_as(source, "q8_0"))
    kept = {key: field.contents() for key, field in before.fields.items() if not key.startswith("GGUF.")}
    found = {key: field.contents() for key, field in after.fields.items() if not key.startswith("GGUF.")}
    assert found == {**kept, "general.file_type": 7}
    for old, new in zip(before.tensors, after.tensors, strict=True):
        assert (old.name, list(old.shape)) == (new.name, list(new.shape))
        expected = gguf.quants.dequantize(old.data, old.tensor_type)
        error = np.abs(gguf.quants.dequantize(new.data, new.tensor_type) - expected).max()
        assert error <= np.abs(expected).max() / 127 / 2 * 1.01  # half a step of eight bits
    assert [tensor.tensor_type for tensor in after.tensors] == [Q.Q8_0, Q.F32]


def test_it_is_made_once(source):
    copy = stored_as(source, "q8_0")
    made = copy.stat().st_mtime_ns
    assert stored_as(source, "q8_0").stat().st_mtime_ns == made


def test_junk_is_refused(tmp_path):
    path = tmp_path / "junk.gguf"
    path.write_bytes(b"junk" * 100)
    with pytest.raises(ModelError, match=r"junk\.gguf is not a GGUF file"):
        stored_as(path, "q8_0")


def written(path, **tensors):
    writer = gguf.GGUFWriter(path, "llama")
    for name, values in tensors.items():
        writer.add_tensor(f"{name}.weight", values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("kind", sorted(set(TYPES) - {"q2_0"}))  # which the library gguf cannot read yet
def test_more_bits_are_nearer(tmp_path, kind):
    """A row of normal values comes back within what the bits of its type allow, and the file has its size."""
    values = np.random.default_rng(1).normal(size=(4, 512))
    (stored,) = gguf.GGUFReader(stored_as(written(tmp_path / "w.gguf", ffn_down=values), kind)).tensors
    assert stored.n_bytes == values.size * TYPES[kind].bits / 8
    error = np.sqrt(np.mean((gguf.quants.dequantize(stored.data, stored.tensor_type) - values) ** 2))
    assert error < 3 * 2 ** -min(TYPES[kind].bits, 12)  # a normal value spans some four deviations


def test_rows_that_a_type_cannot_hold_take_llama_cpps_own_substitute(tmp_path):
    wide, narrow = np.ones((2, 256)), np.ones((2, 32))
    source = written(tmp_path / "w.gguf", wide=wide, narrow=narrow, token_embd=wide)
    held = {
        kind: {tensor.name: tensor.tensor_type for tensor in gguf.GGUFReader(stored_as(source, kind)).tensors}
        for kind in ("q4_k", "q3_k")
    }
    assert held["q4_k"] == {"wide.weight": Q.Q4_K, "narrow.weight": Q.Q5_0, "token_embd.weight": Q.Q8_0}
    assert held["q3_k"] == {"wide.weight": Q.Q3_K, "narrow.weight": Q.IQ4_NL, "token_embd.weight": Q.Q8_0}


def test_rows_that_no_type_holds_are_refused(tmp_path):
    with pytest.raises(ModelError, match="rows of 33 values cannot be stored as Q4_0"):
        stored_as(written(tmp_path / "w.gguf", odd=np.ones((2, 33))), "q4_0")


FINITE = (
    st.floats(-8, 8, width=16).filter(lambda value: value == 0 or abs(value) > 1e-3).map(lambda value: value + 0.0)
)  # no -0: its sign may stay


@pytest.mark.parametrize("kind", ["q8_0", "q5_0", "q4_1", "q4_0"])
@given(values=arrays.arrays(np.float32, (3, 64), elements=FINITE))
@settings(max_examples=30, deadline=None)
def test_both_libraries_round_alike(kind, values):
    ours = quantized(values, TYPES[kind])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gguf_module, "_llamacpp", lambda: None)  # gguf's turn
        theirs = quantized(values, TYPES[kind])
    assert ours.shape == theirs.shape
    assert np.array_equal(ours, theirs)


def test_two_bits_keep_what_lies_on_their_steps():
    values = np.tile(np.array([-1, 0, 1, 0], np.float32), (2, 16))
    stored = quantized(values, TYPES["q2_0"])
    assert stored.shape == (2, TYPES["q2_0"].block_bytes)
    assert len(np.unique(stored[0, 2:])) == 1  # sixteen bytes of the same four values


def test_a_build_without_a_quantizer_leaves_what_gguf_can_write(monkeypatch):
    gguf_module._llamacpp.cache_clear()
    monkeypatch.setattr(gguf_module.ctypes, "CDLL", lambda path: object())
    assert quantized(np.ones((1, 256), np.float32), TYPES["q8_0"]).shape == (1, 8 * TYPES["q8_0"].block_bytes)
    with pytest.raises(NotImplementedError):  # a sentence where a file is stored
        quantized(np.ones((1, 256), np.float32), TYPES["q3_k"])
    gguf_module._llamacpp.cache_clear()


THINKING = {"tokenizer.chat_template": "{% if enable_thinking %}<think>{% endif %}"}


def sampled(metadata, **request):
    return gguf_card(metadata).sampling(ChatRequest((), **request))


@pytest.mark.parametrize(
    ("metadata", "request_", "expected"),
    [
        ({}, {}, {"temperature": 0.0}),
        ({}, {"temperature": 0.7}, {"temperature": 0.7}),
        ({}, {"temperature": 0.7, "top_k": 5}, {"temperature": 0.7, "top_k": 5}),
        ({}, {"thinking_tokens": 9}, {"temperature": 0.0}),
        (THINKING, {}, {"temperature": 0.0}),
        (THINKING, {"thinking_tokens": 9}, {"temperature": 0.6}),
        (THINKING, {"thinking_tokens": 9, "temperature": 0.2, "min_p": 0.1}, {"temperature": 0.2, "min_p": 0.1}),
    ],
)
def test_what_is_asked_goes_first_and_only_thoughts_are_never_greedy(metadata, request_, expected):
    assert sampled(metadata, **request_) == expected


def test_qwen3_has_its_cards_settings_for_thinking_and_for_plain_replies():
    qwen3 = {**THINKING, "general.architecture": "qwen3"}
    assert sampled(qwen3, thinking_tokens=9) == {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0.0}
    assert sampled(qwen3, temperature=0.7) == {"temperature": 0.7, "top_p": 0.8, "top_k": 20, "min_p": 0.0}
    assert sampled(qwen3, temperature=0.7, top_p=0.5)["top_p"] == 0.5


def test_what_the_file_carries_goes_before_what_is_known_of_its_family():
    carried = {**THINKING, "general.architecture": "qwen3", "general.sampling.temp": 0.9, "general.sampling.top_k": 7}
    assert sampled(carried, thinking_tokens=9) == {"temperature": 0.9, "top_p": 0.95, "top_k": 7, "min_p": 0.0}


TEXTS = [
    "",
    "The relief valve of press P-1 opens at 290 bar; the oil is changed every 2,000 hours.",
    "Die Hydraulikpresse läuft mit 140 bar – größer als Straßenbahnen und Übergänge.",
    "Предохранительный клапан открывается при 290 бар, масло меняют каждые 2000 часов.",
    "安全阀在290巴时打开，油每2000小时更换一次。百二十三",
    "La válvula se abre a 290 bares, ¿verdad? ¡Sí! ½ ² Ⅳ ④",
    "صمام الأمان يفتح عند ٢٩٠ بار. שסתום הבטיחות נפתח",
    "वाल्व २९० बार पर खुलता है ไทย 日本語カナ 한국어",
    "１２３ ٣٤٥ 1234567 12.5 3,000 $5.00 100%",
    "🙂👩‍👩‍👧‍👦 e\u0301 ﬁ 𝔘𝔫𝔦 𐍈 İ ı ß ſ",
    "a  b   c\n\n\n d\t\te \r\n\r\n \u00a0\u200b\u3000 end ",
    "don't I'LL we've YOU'RE 's 'S",
    "x = {'a': [1, 2]}; for (i = 0; i < 10; i++) { snake_case.__x__ }  # https://a.b/c?d=e#f",
    "<|im_start|>user\nHello<|im_end|> <|endoftext|><not_a_token|>",
    "\x00\x07",
    "[1] press.md, p. 3\nThe filter is changed monthly.\n\n[2] log.txt\nNothing.",
]


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_it_counts_as_llama_cpp_does(family, tmp_path):
    path = write_tiny_gguf(tmp_path / "tiny.gguf", pre=family)
    server, tokenizer = LlamaCppServer(path, 512, 1), gguf_tokenizer(path)
    counted = {text: len(tokenizer.encode(text, add_special_tokens=False)) for text in TEXTS}
    assert counted == {text: server.count_tokens(text) for text in TEXTS}


@pytest.mark.slow
def test_the_packaged_model_counts_without_being_loaded(monkeypatch):
    def load(*given):
        raise AssertionError("the model was loaded to count")

    monkeypatch.setattr(llamacpp, "LlamaCppServer", load)
    assert [LlamaCppChat("smollm2").count_tokens(text) for text in ("", "Hello world")] == [0, 2]


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"pre": "deepseek-llm"}, {"model": "llama"}])
def test_another_family_is_left_to_llama_cpp(changes, tmp_path):
    assert gguf_tokenizer(write_tiny_gguf(tmp_path / "tiny.gguf", **changes)) is None


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"merges": ["no such", "pair"]}, {"token_type": [1, 1]}])
def test_a_vocabulary_that_does_not_fit_together_is_left_to_llama_cpp(changes, tmp_path):
    assert gguf_tokenizer(write_tiny_gguf(tmp_path / "tiny.gguf", **changes)) is None


@pytest.mark.slow
def test_llama_cpp_counts_for_a_model_of_another_family(tmp_path):
    path = write_tiny_gguf(tmp_path / "tiny.gguf", pre="deepseek-llm")
    assert LlamaCppChat(str(path), context=512, threads=1).count_tokens("Hello world") == 2


@pytest.mark.slow
@pytest.mark.parametrize("kept", [0, 3, 20, 200, 100_000])
def test_a_file_that_is_none_or_not_whole_has_no_tokenizer(kept, tmp_path):
    damaged = tmp_path / "damaged.gguf"
    with packaged("smollm2").open("rb") as whole:
        damaged.write_bytes(whole.read(kept))
    assert gguf_metadata(damaged) is None
    assert gguf_tokenizer(damaged) is None


@pytest.mark.slow
def test_the_metadata_are_those_that_the_gguf_package_reads(tmp_path):
    from gguf import GGUFReader

    path = write_tiny_gguf(tmp_path / "tiny.gguf", tokens=["a", "é", "Ġb"], token_type=[3, 1, 1], merges=["a b"])
    fields = GGUFReader(path).fields
    expected = {key: field.contents() for key, field in fields.items() if not key.startswith("GGUF.")}
    assert json.dumps(gguf_metadata(path)) == json.dumps(expected)
    assert Path(path).stat().st_size < 100_000
