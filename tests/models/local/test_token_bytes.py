import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.models.local.schema_matcher import token_bytes
from tests.tiny_models import byte_level_tokenizer


@pytest.fixture(scope="module")
def byte_level():
    return byte_level_tokenizer()


@pytest.fixture(scope="module")
def sentencepiece():
    """Like Gemma's: words after a mark, single bytes for what the vocabulary lacks."""
    from tokenizers import Tokenizer, decoders, models, normalizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {"<unk>": 0, **{f"<0x{byte:02X}>": 1 + byte for byte in range(256)}}
    for token in ("▁", "a", "b", '"', "▁a", "é"):
        vocabulary[token] = len(vocabulary)
    inner = Tokenizer(models.BPE(vocabulary, [("▁", "a")], unk_token="<unk>", byte_fallback=True))
    inner.normalizer = normalizers.Replace(" ", "▁")
    inner.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="<unk>")


def check_round_trip(tokenizer, text):
    written = token_bytes(tokenizer)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert b"".join(written[token] for token in ids) == text.encode()


@given(text=st.text(max_size=30))
@settings(deadline=None)
def test_the_tokens_of_a_text_write_its_bytes(text, byte_level, sentencepiece):
    check_round_trip(byte_level, text)
    check_round_trip(sentencepiece, text.replace("▁", " "))


def test_added_tokens_write_what_they_say(byte_level):
    check_round_trip(byte_level, "<think>\n7 µm</think>")


def test_a_number_without_a_token_writes_nothing(sentencepiece):
    sentencepiece.add_tokens(["c"])
    gap = dict(sentencepiece.get_vocab())
    assert len(token_bytes(sentencepiece)) == max(gap.values()) + 1


def test_other_tokenizers_are_not_guessed_at(tiny_causal):
    from transformers import AutoTokenizer

    assert token_bytes(AutoTokenizer.from_pretrained(tiny_causal)) is None
    assert token_bytes(object()) is None


@pytest.mark.slow
def test_the_packaged_models_tokens(real_home):
    from rag_lab.models.local.causal import CausalSettings

    check_round_trip(
        CausalSettings("smollm2").tokenizer(), '{"answer": "Grease NLGI 2 – every 500 h.\\n", "é": ["📄"]}'
    )
