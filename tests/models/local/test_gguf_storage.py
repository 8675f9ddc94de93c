import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rag_lab.errors import ModelError
from rag_lab.models.local import gguf_storage
from rag_lab.models.local.gguf_storage import TYPES, quantized, stored_as

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


def _only_read(*_):
    raise NotImplementedError


@pytest.mark.parametrize("kind", ["q8_0", "q5_0", "q4_1", "q4_0"])
@given(values=arrays.arrays(np.float32, (3, 64), elements=FINITE))
@settings(max_examples=30, deadline=None)
def test_both_libraries_round_alike(kind, values):
    ours = quantized(values, TYPES[kind])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gguf.quants.quantize", _only_read)
        theirs = quantized(values, TYPES[kind])
    assert ours.shape == theirs.shape
    assert np.array_equal(ours, theirs)


def test_two_bits_keep_what_lies_on_their_steps():
    values = np.tile(np.array([-1, 0, 1, 0], np.float32), (2, 16))
    stored = quantized(values, TYPES["q2_0"])
    assert stored.shape == (2, TYPES["q2_0"].block_bytes)
    assert len(np.unique(stored[0, 2:])) == 1  # sixteen bytes of the same four values


def test_a_build_without_a_quantizer_is_said(monkeypatch):
    gguf_storage._llamacpp.cache_clear()
    monkeypatch.setattr(gguf_storage.ctypes, "CDLL", lambda path: object())
    with pytest.raises(ValueError, match="this build of xllamacpp shows no quantizer"):
        quantized(np.ones((1, 256), np.float32), TYPES["q3_k"])
    gguf_storage._llamacpp.cache_clear()
