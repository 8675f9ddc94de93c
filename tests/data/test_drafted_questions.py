"""Questions drafted from headings that prose follows, or from subjects of sentences where there is no heading."""

from rag_lab.data.synthetic import drafted_questions

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
