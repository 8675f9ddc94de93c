import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.stages.answer.quotable import quotable, windows

PARTS = [
    "The press stops.",
    "1.",
    "2.  Call Mr Okoro",
    "Stage  Torque",
    "- oil",
    "wrapped",
    "| a | b |",
    "(a) c",
    "Größe?",
]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=12).flatmap(
    lambda parts: st.lists(st.sampled_from(["\n", "\n\n", " ", "  "]), min_size=len(parts), max_size=len(parts)).map(
        lambda gaps: "".join(part + gap for part, gap in zip(parts, gaps, strict=True))
    )
)


def units(text):
    return [text[start:end] for start, end in quotable(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The press stops. It is\nloud.", ["The press stops.", "It is\nloud."]),
        ("Item  Value\nPilot  35 bar\nSet it\nwith care.", ["Item  Value", "Pilot  35 bar", "Set it\nwith care."]),
        ("1.  Warm it to\n40 °C.\n2.  Wipe it.", ["1.  Warm it to\n40 °C.", "2.  Wipe it."]),
        ("- oil\n- grease", ["- oil", "- grease"]),
        ("| a | b |\n| c | d |", ["| a | b |", "| c | d |"]),
        ("Steps:\n1.\nWarm it.", ["Steps:", "1.\nWarm it."]),
        ("3.", []),
        ("", []),
    ],
)  # fmt: skip
def test_sentences_rows_and_items_are_told_apart(text, expected):
    assert units(text) == expected


@given(TEXTS)
def test_nothing_is_lost_but_marks_that_number_nothing_and_nothing_stands_twice(text):
    spans = quotable(text)
    assert spans == sorted(spans)
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)
    left_out = "".join(text[end:start] for (_, end), (start, _) in zip(spans, spans[1:], strict=False))
    assert left_out.strip() == ""


@given(TEXTS, st.integers(1, 4))
def test_windows_are_runs_of_units_the_short_ones_first(text, longest):
    spans = quotable(text)
    found = windows(spans, longest)
    assert found[: len(spans)] == spans
    assert len(found) == len(set(found)) == sum(max(0, len(spans) - length + 1) for length in range(1, longest + 1))
    assert {start for start, _ in found} <= {start for start, _ in spans}
    assert {end for _, end in found} <= {end for _, end in spans}
