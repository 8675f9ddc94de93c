"""A home that keeps converted weights for the whole run, and models small enough to make on the spot."""

from pathlib import Path

import pytest
from tiny_models import write_tiny_bert

from tests.tiny_models import ALWAYS, make_tiny_thinker

_TEXT = """
passage please write a question based on this how often is the filter of oven changed monthly by maintenance
press runs at 140 bar what pressure does it need grease ram guides every 500 hours who changes when and . ? :
"""
WORDS = _TEXT.split()


@pytest.fixture(scope="session")
def converted_home(tmp_path_factory):
    return tmp_path_factory.mktemp("converted_home")


@pytest.fixture
def real_home(_own_home, converted_home, monkeypatch):
    """Converting the packaged weights takes half a minute: once a run, not once a test."""
    monkeypatch.setenv("RAG_LAB_HOME", str(converted_home))
    return converted_home


@pytest.fixture(scope="session")
def tiny_causal(tmp_path_factory) -> Path:
    """The folder of a random two-layer Llama whose template has a thinking switch and whose vocabulary is `WORDS`."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("tiny") / "tiny-llama"
    tokenizer = _tokenizer(["<s>", "</s>", "<unk>"])
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m.content }} {% endfor %}"
        "{% if add_generation_prompt %}{% if enable_thinking %}who {% else %}what {% endif %}{% endif %}"
    )
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=96,
        bos_token_id=0,
        eos_token_id=1,
        initializer_range=0.6,  # far from uniform, so that a wrong position or mask shows
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_thinker(tmp_path_factory) -> Path:
    """The folder of a random two-layer Qwen3 that thinks where its template is told to."""
    return make_tiny_thinker(tmp_path_factory.mktemp("tiny") / "tiny-thinker")


@pytest.fixture(scope="session")
def always_thinking(tmp_path_factory) -> Path:
    """The folder of a random two-layer Qwen3 whose prompts open a thought, and which holds few tokens."""
    return make_tiny_thinker(tmp_path_factory.mktemp("tiny") / "always-thinking", ALWAYS, context=160)


@pytest.fixture(scope="session")
def tiny_cross_encoder(tmp_path_factory) -> Path:
    """The folder of a random two-layer BERT with one output."""
    return write_tiny_bert(tmp_path_factory.mktemp("tiny") / "tiny-bert", WORDS, num_labels=1)


@pytest.fixture(scope="session")
def tiny_classifier(tmp_path_factory) -> Path:
    """The folder of a random two-layer BERT with three outputs, which is no relevance scorer."""
    return write_tiny_bert(tmp_path_factory.mktemp("tiny") / "tiny-classifier", WORDS, num_labels=3)


def _tokenizer(special):
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate([*special, *dict.fromkeys(WORDS)])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
    )
