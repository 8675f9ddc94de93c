"""A model of Qwen3's architecture with random weights: its chat template, its marks of thought, every byte a token."""

from pathlib import Path

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
