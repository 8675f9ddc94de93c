"""Questions drafted from headings, rows and subjects of sentences."""

from rag_lab.data.drafted_questions import drafted_questions

MANUAL = """# Manual

## Relief valve

It opens when it must.

## Oil change

Do it monthly.
"""
ROWS = "Setting  Value\nSystem pressure  260 bar\nPilot pressure  35 bar\n"
PROSE = "The curing oven is heated by gas. The night shift has two operators."


def asked(texts, language="english", n=12):
    return [question.text for question in drafted_questions(texts, language, n)]


def test_headings_rows_and_subjects_are_asked_about():
    found = asked({"a.md": MANUAL, "b.txt": ROWS, "c.txt": PROSE})
    for topic in ("Relief valve", "Oil change", "System pressure", "curing oven", "night shift"):
        assert sum(f"“{topic}”" in text for text in found) == 1


def test_files_take_turns_and_no_more_are_drafted_than_asked_for():
    found = asked({"a.md": MANUAL, "b.txt": ROWS, "c.txt": PROSE}, n=3)
    assert [topic for topic in ("Relief", "System", "curing") if any(topic in text for text in found)] == [
        "Relief", "System", "curing",
    ]  # fmt: skip


def test_what_stands_in_several_files_is_not_asked_since_nobody_could_tell_which():
    assert asked({"a.md": MANUAL, "b.md": MANUAL}) == []


def test_the_sentence_is_in_the_language_of_the_texts():
    assert asked({"a.md": MANUAL}, "german")[0].startswith("Was steht in den Dokumenten über „Relief valve“")
    assert asked({"a.md": MANUAL}, "finnish")[0].startswith("What do the documents say")


def test_drafts_are_marked_and_carry_no_label():
    (first, *_) = drafted_questions({"a.md": MANUAL}, "english", 12)
    assert (first.question_id, first.tags, first.evidence, first.answers) == ("q1", ("drafted",), (), ())
