import json

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.models.local.schema_matcher import SchemaError, SchemaMatcher, token_bytes
from rag_lab.stages.answer.prompts import SCHEMA
from rag_lab.stages.query.prompts import UNDERSTANDING_SCHEMA, phrasing_schema
from tests.tiny_models import byte_level_tokenizer

WIDTH = 400  # more than the tokenizer has


@pytest.fixture(scope="module")
def tokenizer():
    return byte_level_tokenizer()


def matcher(tokenizer, schema):
    return SchemaMatcher(schema, tokenizer, (tokenizer.eos_token_id,))


@given(seed=st.integers(0, 10_000), schema=st.sampled_from([SCHEMA, UNDERSTANDING_SCHEMA, phrasing_schema(2)]))
@settings(deadline=None, max_examples=30)
def test_whatever_is_allowed_ends_in_json_of_the_schema(seed, schema, tokenizer):
    random, guide, written = np.random.default_rng(seed), matcher(tokenizer, schema), []
    while not guide.complete:
        allowed = np.flatnonzero(guide.allowed(WIDTH))
        closing = [token for token in allowed if tokenizer.decode([token]) in ('"', "]", "}")]
        written.append(int(random.choice(closing or allowed)))  # else a string goes on for long
        guide.take(written[-1])
    jsonschema.validate(json.loads(tokenizer.decode(written)), schema)
    assert guide.problem == ""


def test_json_as_python_writes_it_is_allowed_token_by_token(tokenizer):
    text = json.dumps({"answer": "140 bar, “as of 2025”\n", "citations": [1, 2]}, ensure_ascii=False)
    guide = matcher(tokenizer, SCHEMA)
    for token in tokenizer(text)["input_ids"]:
        assert guide.allowed(WIDTH)[token]
        guide.take(token)
    assert guide.complete


def test_what_stands_outside_of_the_vocabulary_and_special_tokens_are_never_allowed(tokenizer):
    guide = SchemaMatcher({"type": "string"}, tokenizer, (tokenizer.eos_token_id,), barred=(270,))
    guide.take(tokenizer.get_vocab()['"'])
    allowed = guide.allowed(WIDTH)
    assert allowed[: len(tokenizer)].sum() > 100
    assert not allowed[len(tokenizer) :].any()
    assert not any(allowed[token] for token in (*tokenizer.all_special_ids, 270))


@pytest.mark.parametrize("schema", [{"type": "frob"}, {"type": "array", "uniqueItems": True}, {"$ref": "http://x/y"}])
def test_a_schema_that_cannot_be_followed_is_one_sentence(schema, tokenizer):
    with pytest.raises(SchemaError, match="The reply cannot be held to its schema: ") as caught:
        matcher(tokenizer, schema)
    assert "\n" not in str(caught.value)


def test_a_token_that_was_not_allowed_is_a_problem(tokenizer):
    guide = matcher(tokenizer, SCHEMA)
    guide.take(tokenizer.get_vocab()["a"])
    assert guide.problem.startswith("The reply cannot be held to its schema: ")
    assert guide.complete


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
