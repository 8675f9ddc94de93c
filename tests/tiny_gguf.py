"""A GGUF file with the packaged model's vocabulary and next to no weights, which llama.cpp loads in a moment."""

import numpy as np
from gguf import GGUFValueType, GGUFWriter

from rag_lab.models.local.gguf_file import gguf_metadata
from rag_lab.models.weights import packaged

_DIM = 32
_TYPES = {str: GGUFValueType.STRING, bool: GGUFValueType.BOOL, int: GGUFValueType.UINT32}


def write_tiny_gguf(path, **changes):
    """Write the file; `changes` replace values of `tokenizer.ggml`, as in `pre="qwen2"`."""
    found = gguf_metadata(packaged("smollm2"))
    vocabulary = {key: value for key, value in found.items() if key.startswith("tokenizer.")}
    vocabulary |= {f"tokenizer.ggml.{name}": value for name, value in changes.items()}
    writer = GGUFWriter(path, "llama")
    writer.add_context_length(2048)
    writer.add_embedding_length(_DIM)
    writer.add_block_count(1)
    writer.add_feed_forward_length(_DIM)
    writer.add_head_count(1)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_DIM)
    for key, value in vocabulary.items():
        if isinstance(value, list):
            writer.add_array(key, value)
        else:
            writer.add_key_value(key, value, _TYPES[type(value)])
    _add_weights(writer, len(vocabulary["tokenizer.ggml.tokens"]))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_weights(writer, n_tokens):
    sizes = {"token_embd": (n_tokens, _DIM), "output_norm": (_DIM,)}
    sizes |= {f"blk.0.{name}": (_DIM,) for name in ("attn_norm", "ffn_norm")}
    matrices = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    sizes |= {f"blk.0.{name}": (_DIM, _DIM) for name in matrices}
    for name, size in sizes.items():
        writer.add_tensor(f"{name}.weight", np.full(size, 0.01, np.float32))
