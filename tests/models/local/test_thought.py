import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.models.local.guided_reply import ThinkingMarks, Thought, thinking_marks
from tests.tiny_models import byte_level_tokenizer

OPEN, CLOSE, BREAK = 1, 2, 3
MARKS = ThinkingMarks(OPEN, CLOSE, closing=(BREAK, CLOSE, BREAK, BREAK), after=(BREAK, BREAK))


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
    thought = Thought(MARKS, budget, opened, spaced)
    tokens = written(thought, wanted if opened else [OPEN, *wanted])
    assert thought.length == len(tokens) <= max(thought.most_tokens, 1 + len(MARKS.closing))
    assert tokens.count(CLOSE) == 1
    forced_end = tokens[-len(MARKS.closing) :] == list(MARKS.closing)
    assert forced_end or tokens[-1] == CLOSE or tokens[-3:] == [CLOSE, *MARKS.after]


def test_one_that_goes_on_fills_its_budget_to_the_token():
    assert written(Thought(MARKS, 10, opened=True, spaced=True), []) == [9] * 6 + list(MARKS.closing)


def test_one_that_ends_by_itself_keeps_its_length():
    assert written(Thought(MARKS, 100, opened=True, spaced=False), [8, CLOSE]) == [8, CLOSE]
    assert written(Thought(MARKS, 100, opened=True, spaced=True), [8, CLOSE]) == [8, CLOSE, *MARKS.after]


def test_one_that_nobody_asked_for_is_closed_at_once():
    assert written(Thought(MARKS, 0, opened=True, spaced=True), []) == list(MARKS.closing)


@pytest.mark.parametrize(
    ("prompt", "opened"), [([OPEN], True), ([OPEN, 9, CLOSE, 9], False), ([9], False), ([], False)]
)
def test_a_prompt_may_leave_a_thought_open(prompt, opened):
    assert MARKS.opened_in(prompt) is opened


def test_marks_are_tokens_of_their_own(tiny_causal):
    from transformers import AutoTokenizer

    marks = thinking_marks(byte_level_tokenizer())
    assert byte_level_tokenizer().decode(list(marks.closing)) == "\n</think>\n\n"
    assert thinking_marks(AutoTokenizer.from_pretrained(tiny_causal)) is None
