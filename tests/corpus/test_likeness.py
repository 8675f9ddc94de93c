from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.corpus.likeness import WEIGHTS, likeness, overlaps

texts = st.text(st.sampled_from("ab .\n|#é"), max_size=40)


def test_the_parts_are_what_they_say() -> None:
    found = overlaps("# The oil is old\n\nChange it.", "the oil is hot\nChange it.")
    assert found["words"] == pytest.approx(2 * 5 / 12)  # the, oil, is, change, it.
    assert found["sentences"] == pytest.approx(2 * 1 / 4)
    first, second = "the oil is old change it.", "the oil is hot change it."
    assert found["characters"] == pytest.approx(_lcs(first, second) / 25)
    assert found["edits"] == pytest.approx(1 - 3 / 25)


def _lcs(first: str, second: str) -> int:
    """The length of the longest common subsequence, by the textbook's table."""
    row = [0] * (len(second) + 1)
    for a in first:
        before = 0
        for number, b in enumerate(second, start=1):
            before, row[number] = row[number], before + 1 if a == b else max(row[number], row[number - 1])
    return row[-1]


def test_the_score_is_their_weighted_sum() -> None:
    assert WEIGHTS == {"words": 0.4, "characters": 0.2, "sentences": 0.3, "edits": 0.1}
    parts = overlaps("oil and soup", "oil or soup. Twice.")
    expected = 0.4 * parts["words"] + 0.2 * parts["characters"] + 0.3 * parts["sentences"] + 0.1 * parts["edits"]
    assert likeness("oil and soup", "oil or soup. Twice.") == pytest.approx(expected)


@settings(max_examples=100, deadline=None)
@given(texts, texts)
def test_it_is_between_nothing_and_the_same(first: str, second: str) -> None:
    assert 0 <= likeness(first, second) <= 1
    assert likeness(first, first) == pytest.approx(1)
    assert likeness(first, second) == pytest.approx(likeness(second, first))


def test_markup_and_case_are_left_aside() -> None:
    assert likeness("# Oil\n\n| A | B |\n| --- | --- |\n| 1 | 2 |", "OIL\n\nA B\n\n1 2") > 0.95
    assert likeness("nothing of the kind", "Pressure 275 bar") < 0.4
