import numpy as np
import pytest

from rag_lab.errors import ModelError
from rag_lab.models.local.gguf_conversion import q8_0_copy

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
    before, after = gguf.GGUFReader(source), gguf.GGUFReader(q8_0_copy(source))
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
    copy = q8_0_copy(source)
    made = copy.stat().st_mtime_ns
    assert q8_0_copy(source).stat().st_mtime_ns == made


def test_junk_is_refused(tmp_path):
    path = tmp_path / "junk.gguf"
    path.write_bytes(b"junk" * 100)
    with pytest.raises(ModelError, match=r"junk\.gguf is not a GGUF file"):
        q8_0_copy(path)
