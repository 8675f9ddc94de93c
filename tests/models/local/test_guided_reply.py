import json

import jsonschema
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.models.local.guided_reply import (
    PromptError,
    ReplyGuide,
    SchemaMatcher,
    ThinkingMarks,
    Thought,
    thinking_marks,
    token_bytes,
)
from rag_lab.stages.generate import SCHEMA
from rag_lab.stages.understand import UNDERSTANDING_SCHEMA, phrasing_schema
from tests.tiny_models import byte_level_tokenizer

TOKENIZER = byte_level_tokenizer()
END = TOKENIZER.eos_token_id
MARKS = thinking_marks(TOKENIZER)


def guide(max_tokens=50, thought=None, schema=None):
    matcher = None if schema is None else SchemaMatcher(schema, TOKENIZER, (END,), (MARKS.open, MARKS.close))
    return ReplyGuide(max_tokens, (END,), matcher, thought)


def allowed(guide):
    scores = torch.zeros(len(TOKENIZER))
    guide.restrict(scores)
    return {TOKENIZER.convert_ids_to_tokens(token) for token in torch.isfinite(scores).nonzero().flatten().tolist()}


def write(guide, text):
    for token in TOKENIZER(text)["input_ids"]:
        guide.take(token)


def test_a_model_may_begin_with_a_thought_or_with_its_reply():
    asked = guide(thought=Thought(MARKS, 64, opened=False, spaced=True), schema=SCHEMA)
    assert allowed(asked) == {'{"', "<think>"}
    write(asked, '{"')
    assert "<think>" not in allowed(asked)
    assert asked.thought_ids == []


def test_a_reply_cannot_end_inside_a_thought_and_is_held_after_it():
    thinking = guide(thought=Thought(MARKS, 64, opened=False, spaced=True), schema=SCHEMA)
    write(thinking, "<think>\n140 bar")
    assert len(allowed(thinking)) == len(TOKENIZER) - 1
    assert "<|im_end|>" not in allowed(thinking)
    write(thinking, "</think>")
    assert allowed(thinking) == {"ĊĊ"}
    write(thinking, "\n\n")
    assert allowed(thinking) == {'{"'}
    write(thinking, '{"answer": "140 bar", "citations": []}')
    assert thinking.over
    assert not thinking.truncated
    assert TOKENIZER.decode(thinking.reply_ids) == '{"answer": "140 bar", "citations": []}'
    assert TOKENIZER.decode(thinking.thought_ids) == "<think>\n140 bar</think>\n\n"


def test_the_length_is_that_of_the_reply_alone():
    thinking = guide(3, Thought(MARKS, 64, opened=True, spaced=False))
    write(thinking, "a longer thought</think>")
    write(thinking, "ab")
    assert not thinking.over
    write(thinking, "c")
    assert thinking.over
    assert thinking.truncated
    assert len(thinking.reply_ids) == 3


def test_a_reply_that_ends_with_its_last_token_is_not_cut_off():
    plain = guide(3)
    write(plain, "ab<|im_end|>")
    assert plain.over
    assert not plain.truncated
    write(plain, "padding")
    assert len(plain.reply_ids) == 3


@pytest.mark.parametrize("token", ["<think>", "</think>", "<|im_start|>"])
def test_no_mark_stands_inside_of_held_text(token):
    held = guide(schema=SCHEMA)
    write(held, '{"answer": "a')
    assert token not in allowed(held)


OPEN, CLOSE, BREAK = 1, 2, 3
BARE_MARKS = ThinkingMarks(OPEN, CLOSE, closing=(BREAK, CLOSE, BREAK, BREAK), after=(BREAK, BREAK))


def written(thought, wanted):
    """What a model writes that wants these tokens and then the letter 9 for ever, until its thought is closed."""
    tokens, wanted = [], iter(wanted)
    while thought.is_open or not tokens:
        tokens.append(thought.forced[0] if thought.forced else next(wanted, 9))
        thought.take(tokens[-1])
    return tokens


@given(
    budget=st.integers(0, 40),
    wanted=st.lists(st.sampled_from([CLOSE, 8, 9]), max_size=50),
    opened=st.booleans(),
    spaced=st.booleans(),
)
def test_a_thought_is_closed_within_its_budget(budget, wanted, opened, spaced):
    thought = Thought(BARE_MARKS, budget, opened, spaced)
    tokens = written(thought, wanted if opened else [OPEN, *wanted])
    assert thought.length == len(tokens) <= max(thought.most_tokens, 1 + len(BARE_MARKS.closing))
    assert tokens.count(CLOSE) == 1
    forced_end = tokens[-len(BARE_MARKS.closing) :] == list(BARE_MARKS.closing)
    assert forced_end or tokens[-1] == CLOSE or tokens[-3:] == [CLOSE, *BARE_MARKS.after]


def test_one_that_goes_on_fills_its_budget_to_the_token():
    assert written(Thought(BARE_MARKS, 10, opened=True, spaced=True), []) == [9] * 6 + list(BARE_MARKS.closing)


def test_one_that_ends_by_itself_keeps_its_length():
    assert written(Thought(BARE_MARKS, 100, opened=True, spaced=False), [8, CLOSE]) == [8, CLOSE]
    assert written(Thought(BARE_MARKS, 100, opened=True, spaced=True), [8, CLOSE]) == [8, CLOSE, *BARE_MARKS.after]


def test_one_that_nobody_asked_for_is_closed_at_once():
    assert written(Thought(BARE_MARKS, 0, opened=True, spaced=True), []) == list(BARE_MARKS.closing)


@pytest.mark.parametrize(
    ("prompt", "opened"), [([OPEN], True), ([OPEN, 9, CLOSE, 9], False), ([9], False), ([], False)]
)
def test_a_prompt_may_leave_a_thought_open(prompt, opened):
    assert BARE_MARKS.opened_in(prompt) is opened


def test_marks_are_tokens_of_their_own(tiny_causal):
    from transformers import AutoTokenizer

    marks = thinking_marks(byte_level_tokenizer())
    assert byte_level_tokenizer().decode(list(marks.closing)) == "\n</think>\n\n"
    assert thinking_marks(AutoTokenizer.from_pretrained(tiny_causal)) is None


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
    with pytest.raises(PromptError, match="The reply cannot be held to its schema: ") as caught:
        matcher(tokenizer, schema)
    assert "\n" not in str(caught.value)


def test_a_token_that_was_not_allowed_is_a_problem(tokenizer):
    guide = matcher(tokenizer, SCHEMA)
    guide.take(tokenizer.get_vocab()["a"])
    assert guide.problem.startswith("The reply cannot be held to its schema: ")
    assert guide.complete


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
def test_the_tokens_of_a_text_write_its_bytes(text, tokenizer, sentencepiece):
    check_round_trip(tokenizer, text)
    check_round_trip(sentencepiece, text.replace("▁", " "))


def test_added_tokens_write_what_they_say(tokenizer):
    check_round_trip(tokenizer, "<think>\n7 µm</think>")


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
