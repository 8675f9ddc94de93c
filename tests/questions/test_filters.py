"""Each rule lets a good draft stand and a planted defect fall, in its sentence."""

import pytest

from rag_lab.questions.filters import RULES, agrees, near_duplicates, overlap, pointing, several
from rag_lab.questions.writer import Draft, Place
from rag_lab.records import Chunk, Evidence, Question, Turn

TEXT = (
    "The hydraulic press HP-12 runs at 140 bar while the mould is closed. Its relief valve opens at 155 bar, and the "
    "operator then calls maintenance."
)
QUOTE = "Its relief valve opens at 155 bar"


def draft(
    text="When does the valve of HP-12 let oil out?", answer="at 155 bar", quotes=(QUOTE,), kind="single", **keys
):
    place = Place(Chunk("a#1", "a", "a.txt", None, 0, len(TEXT), TEXT), "prose", keys.pop("language", "english"))
    evidence = tuple(Evidence("a.txt", quote=quote) for quote in quotes)
    name = keys.pop("name", "q1")
    return Draft(Question(name, text, (answer,) if answer else (), evidence=evidence, **keys), kind, (place,))


def why(one):
    return [f"{rule.__name__}: {reason}" for rule in RULES if (reason := rule(one))]


def test_a_good_draft_falls_by_no_rule():
    assert why(draft()) == []
    assert why(draft(quotes=["relief valve\nopens at 155 bar, and the  operator"])) == []  # lines break where they like


@pytest.mark.parametrize(
    ("one", "rule"),
    [
        (draft(quotes=["Its relief valve opens at 165 bar"]), "located"),
        (draft(quotes=[]), "located"),
        (draft(kind="two_passages"), "located"),
        (draft(quotes=["while the mould is closed"]), "supported"),
        (draft(answer="at 165 bar"), "supported"),
        (draft(answer=""), "supported"),
        (draft("When does the valve open according to the passage?"), "pointing"),
        (draft("What is said in this section on the valve?"), "pointing"),
        (draft("When does it open?"), "pointing"),
        (draft("Whom does he call then?"), "pointing"),
        (draft("Wann öffnet das Ventil laut dem Text?", language="german"), "pointing"),
        (draft("When does the valve open and what is the pressure?"), "several"),
        (draft("When does the valve open? And whom does one call?"), "several"),
        (draft("Wann öffnet das Ventil und wer kommt dann?", language="german"), "several"),
        (draft("What is the main topic?"), "generic"),
        (draft("Was ist der Inhalt?", language="german"), "generic"),
        (draft("Does the valve open at 155 bar?"), "copied"),
        (draft("What runs at 140 bar while the mould is closed?"), "copied"),
    ],
)
def test_a_defect_falls_by_its_rule_with_a_reason(one, rule):
    assert any(reason.startswith(f"{rule}: ") and len(reason) > len(rule) + 10 for reason in why(one))


@pytest.mark.parametrize(
    "text",
    [
        "Is it possible to open the valve of HP-12 by hand?",
        "Who wrote the text of the treaty about the valve?",
        "Who checks the valve and the mould of HP-12?",
        "Is the valve of HP-12 open at 140 or at 155 bar?",
        "During the run, who watches the valve?",
    ],
)
def test_what_looks_like_a_defect_and_is_none_stands(text):
    assert why(draft(text)) == []


def test_a_follow_up_may_point_at_what_was_asked_and_needs_it():
    history = (Turn("user", "At what pressure does HP-12 run?"), Turn("assistant", "140 bar."))
    assert why(draft("And when does it open?", kind="follow_up", history=history)) == []
    assert pointing(draft("And when does it open?", kind="follow_up")) == "there is no question before it"


def test_an_unanswerable_draft_needs_no_answer_that_stands_there():
    assert why(draft("When does the valve of HP-13 open?", "HP-13 in place of HP-12", kind="unanswerable")) == []


def test_a_duplicate_is_found_by_its_words_whatever_their_order_and_politeness():
    first = "When does the valve of HP-12 open?"
    again = ["valve of HP-12 opens when?", "Can you please tell me when the valve of HP-12 opens?"]
    drafts = [draft(text, name=f"q{n}") for n, text in enumerate([first, *again])]
    assert [reason for _, reason in near_duplicates(drafts)] == ["", *["q0 asks nearly the same"] * 2]
    known = [Question("mine", "Please tell me when the valve of HP-12 opens")]
    assert near_duplicates(drafts[:1], known) == [(drafts[0], "mine asks nearly the same")]


def test_when_and_who_ask_for_two_things():
    texts = ["When was the council founded?", "Who founded the council?", "Why was the council founded?"]
    drafts = [draft(text, name=f"q{n}") for n, text in enumerate(texts)]
    assert [reason for _, reason in near_duplicates(drafts)] == ["", "", ""]


def test_follow_ups_in_the_same_words_after_other_questions_are_no_duplicates():
    turns = [(Turn("user", f"What is the pressure of {name}?"), Turn("assistant", "140 bar.")) for name in "AB"]
    drafts = [draft("And its valve?", kind="follow_up", name=turn[0].content, history=turn) for turn in turns]
    assert [reason for _, reason in near_duplicates(drafts)] == ["", ""]


@pytest.mark.parametrize(
    ("answer", "reference", "expected"),
    [
        ("The valve opens at 155 bar.", "155 bar", True),
        ("The valve opens at 165 bar.", "155 bar", False),
        ("operators", "the operator", True),
        ("Nobody knows.", "the operator", False),
        ("3", "3", True),
        ("", "155 bar", False),
    ],
)
def test_an_answer_agrees_that_has_the_numbers_and_most_of_the_words(answer, reference, expected):
    assert agrees(answer, [reference], "english") is expected


def test_overlap_counts_content_words_by_their_stems():
    assert overlap("When do the valves open?", ["the valve opens at 155 bar"], "english") == 1.0
    assert overlap("How hot is the valve?", ["the valve opens"], "english") == 0.5
    assert overlap("When?", ["the valve opens"], "english") == 0.0


@pytest.mark.parametrize("language", ["", "japanese"])
def test_a_language_without_words_of_its_own_is_read_as_english(language):
    assert several(draft("What is the pressure and how is it set?", language=language))
