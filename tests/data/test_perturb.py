"""One thing is made wrong, the same thing each time, and what cannot be made wrong is said to be so."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.data.synthetic import (
    add_unsupported_sentence,
    change_number,
    entities,
    move_citation,
    negate,
    swap_entity,
)


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


def test_a_moved_citation_names_a_passage_that_was_not_cited():
    assert move_citation(["a"], ["a", " ", "b"]) == "b"
    assert move_citation(["a"], ["a"]) is None
