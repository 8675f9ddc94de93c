import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.models.protocols import split_thinking


@pytest.mark.parametrize(
    ("raw", "text", "thinking"),
    [
        ("plain", "plain", ""),
        ("<think>\na\n</think>\n\nb", "b", "a"),
        ("opened by the prompt</think>b", "b", "opened by the prompt"),
        ("<think>never closed", "", "never closed"),
        ("<think></think>b", "b", ""),
        ("<think>a</think>b<think>c</think>d", "bd", "a\nc"),
        ("", "", ""),
        ('{"answer": "a</think>b <think>c"}', '{"answer": "a</think>b <think>c"}', ""),
        ('{"maybe": 1} or so</think>{"answer": 2}', '{"answer": 2}', '{"maybe": 1} or so'),
    ],
)
def test_thinking_is_split_off(raw, text, thinking):
    assert split_thinking(raw) == (text, thinking)


@given(st.dictionaries(st.text(), st.sampled_from(["<think>", "</think>", "a</think>b", "<think>a</think>"])))
def test_marks_in_the_strings_of_an_object_are_text(value):
    assert split_thinking(f" {json.dumps(value)}\n") == (json.dumps(value), "")


@given(st.lists(st.sampled_from(["<think>", "</think>", "a", " ", "\n"])).map("".join))
def test_no_opening_mark_stays_in_the_text(raw):
    text, _ = split_thinking(raw)
    assert "<think>" not in text
    assert text == text.strip()
