"""Models for tests: tiny ones with random weights, and the packaged one under a template that thinks."""

from pathlib import Path

import numpy as np
from gguf import GGUFReader, GGUFValueType, GGUFWriter

from rag_lab.models.local.gguf import gguf_metadata
from rag_lab.models.weights import packaged


def write_tiny_bert(folder, words, num_labels, head="SequenceClassification"):
    """Write a random two-layer BERT that knows these words and gives so many scores a pair, and return its folder.

    With the head `MaskedLM` it is a SPLADE model: it gives each word of its vocabulary a weight.
    """
    import torch
    import transformers
    from transformers import BertConfig, BertTokenizerFast

    folder.mkdir()
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *dict.fromkeys(words)]
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    tokenizer = BertTokenizerFast(vocab=str(folder / "vocab.txt"))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.5,
        num_labels=num_labels,
    )
    getattr(transformers, f"BertFor{head}")(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


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


TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)
ALWAYS = TEMPLATE.partition("{% if enable_thinking")[0] + "<think>\n{% endif %}"
"""The template of a model that always thinks: without a switch, the prompt opens the thought."""

WORDS = ["the", " press", " needs", " 140", " bar", '{"', '":', ' "', '",', "answer", "citations", "\n\n"]


def make_tiny_thinker(folder: Path, template: str = TEMPLATE, context: int = 2048) -> Path:
    """Write the model to `folder` and return it."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    tokenizer = byte_level_tokenizer()
    tokenizer.chat_template = template
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tokenizer) + 32,  # as Qwen3 itself: more rows than tokens
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=context,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        initializer_range=0.4,
    )
    model = Qwen3ForCausalLM(config)
    model.generation_config.update(
        do_sample=True, temperature=0.6, top_p=0.95, top_k=20, eos_token_id=tokenizer.eos_token_id
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def byte_level_tokenizer():
    """Return a tokenizer with a token for each byte and for `WORDS`, and Qwen3's marks, which are not special there."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    splitter = pre_tokenizers.ByteLevel(add_prefix_space=False)
    vocabulary = {letter: number for number, letter in enumerate(alphabet)}
    merges = []
    for word in WORDS:
        ((letters, _),) = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(word)
        for end in range(2, len(letters) + 1):
            pair = (letters[: end - 1], letters[end - 1])
            if letters[:end] not in vocabulary:
                vocabulary[letters[:end]] = len(vocabulary)
                merges.append(pair)
    inner = Tokenizer(models.BPE(vocabulary, merges))
    inner.pre_tokenizer, inner.decoder = splitter, decoders.ByteLevel()
    inner.add_special_tokens([AddedToken(text, special=True) for text in ("<|im_start|>", "<|im_end|>", "<|pad|>")])
    inner.add_tokens([AddedToken(text, special=False) for text in ("<think>", "</think>")])
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|im_end|>", pad_token="<|pad|>")


SWITCHED = (
    "{%- for m in messages %}{{- '<|im_start|>' + m.role + '\n' }}"
    "{%- if m.reasoning_content %}{{- '<think>\n' + m.reasoning_content + '\n</think>\n\n' }}{%- endif %}"
    "{{- m.content + '<|im_end|>\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n<think>\n' }}"
    "{%- if enable_thinking is defined and enable_thinking is false %}{{- '\n</think>\n\n' }}{%- endif %}{%- endif %}"
)
ALWAYS_THINKING = SWITCHED.partition("{%- if enable_thinking")[0] + "{%- endif %}"


def write_thinking_gguf(path, template=SWITCHED):
    """Copy the packaged weights, tensor by tensor, under this template."""
    reader = GGUFReader(packaged("smollm2"))
    writer = GGUFWriter(path, "llama")
    for key, stored in reader.fields.items():
        if key.startswith("GGUF.") or key in ("general.architecture", "tokenizer.chat_template"):
            continue
        inner = stored.types[-1] if stored.types[0] == GGUFValueType.ARRAY else None
        writer.add_key_value(key, stored.contents(), stored.types[0], sub_type=inner)
    writer.add_chat_template(template)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
