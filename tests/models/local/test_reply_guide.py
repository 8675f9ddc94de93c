import pytest
import torch

from rag_lab.models.local.guided_reply import ReplyGuide, Thought, thinking_marks
from rag_lab.models.local.schema_matcher import SchemaMatcher
from rag_lab.stages.answer.prompts import SCHEMA
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
