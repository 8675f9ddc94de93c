import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.models.local.guided_reply import ReplyGuide, ThinkingMarks, Thought, thinking_marks
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


OPEN, CLOSE, BREAK = 1, 2, 3
BARE_MARKS = ThinkingMarks(OPEN, CLOSE, closing=(BREAK, CLOSE, BREAK, BREAK), after=(BREAK, BREAK))


def written(thought, wanted):
    """What a model writes that wants these tokens and then the letter 9 for ever, until its thought is closed."""
    tokens, wanted = [], iter(wanted)
    while thought.is_open or not tokens:
        forced = thought.forced
        tokens.append(next(wanted, 9) if forced is None else forced)
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
