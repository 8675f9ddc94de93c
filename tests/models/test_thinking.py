import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.models.thinking import split_thinking


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
    ],
)
def test_thinking_is_split_off(raw, text, thinking):
    assert split_thinking(raw) == (text, thinking)


@given(st.lists(st.sampled_from(["<think>", "</think>", "a", " ", "\n"])).map("".join))
def test_no_opening_mark_stays_in_the_text(raw):
    text, _ = split_thinking(raw)
    assert "<think>" not in text
    assert text == text.strip()
