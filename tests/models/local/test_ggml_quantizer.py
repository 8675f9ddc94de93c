import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rag_lab.models.local import gguf_storage
from rag_lab.models.local.gguf_storage import TYPES, quantized

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
