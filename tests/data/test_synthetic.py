"""Questions drafted from headings that prose follows, or from subjects of sentences where there is no heading."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.data.synthetic import (
    add_unsupported_sentence,
    change_number,
    drafted_questions,
    entities,
    negate,
    swap_entity,
)

VALVE = (
    "## Relief valve\n\nThe valve opens when the pressure of the press is above what its spring holds, and it closes "
    "again by itself as soon as the pressure has fallen; nobody needs to touch the lever.\n"
)
OIL = (
    "## Oil change\n\nThe oil of the pump is changed by two fitters after each winter; they drain it warm, clean the "
    "filter and the tank, and fill it through the trolley up to the upper mark.\n"
)
TABLE = "4 Pump settings\nSetting  Value\nSystem pressure  260 bar\nPilot pressure of the pump  35 bar\n"
PROSE = (
    "The curing oven is heated by gas. In winter the curing oven needs an hour. The night shift has two operators. "
    "The door is open. The door is shut."
)


def asked(pages, language="english", n=12):
    return [question.text for question in drafted_questions(pages, language, n)]


def about(*topics):
    return [f"What do the documents say about “{topic}”?" for topic in topics]


def test_a_heading_that_prose_follows_is_asked_about_once_a_page():
    assert asked({"a.md": [f"# Manual\n\n{VALVE}{OIL}"]}) == about("Relief valve")
    assert asked({"a.md": [VALVE, OIL]}) == about("Relief valve", "Oil change")


def test_headings_of_plain_text_are_lines_with_a_number_or_behind_an_empty_line():
    numbered, apart = VALVE.replace("## ", "3.1 "), OIL.replace("## Oil change", "\nOIL CHANGE")
    assert asked({"a.pdf": [numbered, apart]}) == about("Relief valve", "Oil change")


def test_nothing_is_asked_of_tables_signatures_and_contents_nor_of_headings_that_say_too_little():
    assert asked({"a.pdf": [TABLE, f"{VALVE}\nSignature: ______", f"Contents\n{OIL}"]}) == []
    assert asked({"a.md": [VALVE.replace("Relief valve", "Doing it")]}) == []  # no word of it stands in the text
    assert asked({"a.md": [VALVE.replace("Relief valve", "Valve of P-12")]}) == []


def test_files_take_turns_and_no_two_questions_are_on_the_same_words():
    safety = OIL.replace("Oil change", "Oil of the trolley")
    assert asked({"a.md": [VALVE, safety], "b.md": [OIL]}) == about("Relief valve", "Oil change", "Oil of the trolley")
    assert asked({"a.md": [VALVE, safety], "b.md": [OIL]}, n=2) == about("Relief valve", "Oil change")
    assert asked({"a.md": [VALVE, VALVE.replace("Relief valve", "Valve springs")]}) == about("Relief valve")


def test_what_stands_in_several_files_is_not_asked_since_nobody_could_tell_which():
    assert asked({"a.md": [VALVE], "b.md": [VALVE]}) == []


def test_without_headings_what_a_page_names_twice_is_asked_about():
    assert asked({"c.txt": [PROSE]}) == about("curing oven")
    assert asked({"c.txt": ["The night shift has two operators."]}) == about("night shift")  # better than no question


def test_the_sentence_is_in_the_language_of_the_texts():
    assert asked({"a.md": [VALVE]}, "german")[0].startswith("Was steht in den Dokumenten über „Relief valve“")
    assert asked({"a.md": [VALVE]}, "finnish") == about("Relief valve")


def test_drafts_are_marked_and_carry_no_label():
    (first,) = drafted_questions({"a.md": [VALVE]}, "english", 12)
    assert (first.question_id, first.tags, first.evidence, first.answers) == ("q1", ("drafted",), (), ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The relief valve opens at 290 bar.", "The relief valve opens at 387 bar."),
        ("A torque of 2,750 Nm.", "A torque of 3,667 Nm."),
        ("It takes 1.5 hours.", "It takes 2.0 hours."),
        ("It has 1 door.", "It has 2 door."),
        ("There are 0 errors.", "There are 1 errors."),
        ("Valve RV1 of P-12.", None),
        ("No number.", None),
    ],
)
def test_changed_number(text, expected):
    assert change_number(text) == expected


@given(st.integers(0, 10**9), st.integers(0, 3))
@settings(max_examples=60)
def test_a_changed_number_is_another_number(n, decimals):
    text = f"It is {n / 10**decimals:,.{decimals}f} bar."
    changed = change_number(text)
    assert changed is not None
    assert changed != text
    assert change_number(text) == changed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The door is locked.", "The door is not locked."),
        ("The door is not locked.", "The door is locked."),
        ("It can't be opened.", "It can be opened."),
        ("It isn't red.", "It is red."),
        ("The valve opens at 290 bar.", "The valve never opens at 290 bar."),
        ("290 bar", None),
    ],
)
def test_negation(text, expected):
    assert negate(text) == expected


def test_entities_are_codes_and_names_inside_a_sentence():
    assert entities("The seal kit BV-7160-K of P-11 is made by Acme Works in Bremen.") == [
        "BV-7160-K",
        "P-11",
        "Acme Works",
        "Bremen",
    ]


def test_an_entity_is_swapped_for_the_likest_of_its_kind():
    others = ["E42", "P-13", "Bremen"]
    assert swap_entity("The pump P-12 is new; P-12 is red.", others) == "The pump P-13 is new; P-13 is red."
    assert swap_entity("It was built in Hamburg.", others) == "It was built in Bremen."
    assert swap_entity("It was built in Hamburg.", ["E42"]) is None
    assert swap_entity("It is red.", others) is None
    assert swap_entity("P-12 or P-13.", ["P-13", "P-12"]) is None


def test_an_unsupported_sentence_is_a_right_answer_to_something_else():
    others = ["290 bar", "The door is red and heavy."]
    assert add_unsupported_sentence("290 bar", others) == "290 bar. The door is red and heavy."
    assert add_unsupported_sentence("The door is red and heavy.", others) is None
