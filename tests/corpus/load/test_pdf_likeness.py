from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.corpus.load.pdf_vision import WEIGHTS, likeness, overlaps

texts = st.text(st.sampled_from("ab .\n|#é油。-4"), max_size=40)


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


PAGE = (
    "The relief valve opens at 275 bar and must be\nchecked every day. The hydrau-\nlic oil is of a high-\ntemper type."
    "\n\nBolts\nBolt  Torque\nM6  9 Nm\nM8  22 Nm"
)
READING = (
    "The relief valve opens at 275 bar and must be checked every day. The hydraulic oil is of a high-temper type.\n\n"
    "## Bolts\n\n| Bolt | Torque |\n| --- | --- |\n| M6 | 9 Nm |\n| M8 | 22 Nm |"
)
ZH_PAGE = "每天检查液压油的油位，\n并记录压力。阀门在二百七十五巴时打\n开。如果没有打开请停机。"


@pytest.mark.parametrize(("reading", "page"), [(READING, PAGE), (ZH_PAGE.replace("\n", ""), ZH_PAGE)])
def test_a_perfect_reading_is_the_same_wherever_lines_end(reading: str, page: str) -> None:
    assert overlaps(reading, page) == pytest.approx(dict.fromkeys(WEIGHTS, 1))
    assert likeness(page, reading) == pytest.approx(1)


def test_a_wrong_row_costs_only_itself() -> None:
    assert overlaps(READING.replace("M6", "M5"), PAGE)["sentences"] == pytest.approx(2 * 5 / 12)


def test_chinese_words_are_compared_one_by_one() -> None:
    assert overlaps("打开阀门", "关闭阀门")["words"] == pytest.approx(2 * 2 / 8)


def test_a_lost_minus_sign_is_no_perfect_reading() -> None:
    page = "Cool to -40 C. Never below \u22125 C."
    assert likeness("Cool to 40 C. Never below 5 C.", page) < 0.7
    assert likeness("- Cool to -40 C.\n- Never below \u20135 C.", page) == pytest.approx(1)


def test_lines_without_end_are_compared_one_by_one() -> None:
    lines = ["line"] * 50_000
    assert likeness("\n".join(lines), " ".join(lines)) > 0.6
