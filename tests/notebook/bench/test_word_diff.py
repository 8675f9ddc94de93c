from __future__ import annotations

import pytest

from rag_lab.notebook.bench.word_diff import compared


def marked(pieces) -> list[str]:
    return [piece.text.strip() for piece in pieces if piece.marked]


def test_words_that_the_other_text_lacks_are_marked_and_both_texts_stay_whole() -> None:
    before, after = "The valve opens at 290 bar.", "The valve of P-1 opens at 310 bar."
    old, new = compared(before, after)
    assert "".join(piece.text for piece in old) == before and "".join(piece.text for piece in new) == after
    assert marked(old) == ["290"] and marked(new) == ["of P-1", "310"]


@pytest.mark.parametrize(
    ("before", "after", "gone", "new"),
    [
        ("same words", "same  words", [], []),
        ("", "all new", [], ["all new"]),
        ("all gone", "", ["all gone"], []),
        ("one two", "two one", ["two"], ["two"]),
    ],
)
def test_the_ends(before: str, after: str, gone: list[str], new: list[str]) -> None:
    old, fresh = compared(before, after)
    assert (marked(old), marked(fresh)) == (gone, new)
