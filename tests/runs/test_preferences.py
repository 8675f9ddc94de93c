"""What a person chose is appended, survives a crash, and can be taken back."""

from pathlib import Path

from rag_lab.runs.human_input import PREFERENCES_FILE, Preference, add_preference, read_preferences


def choice(name: str, chosen: str = "left", right: str = "b") -> Preference:
    return Preference(name, "a", right, chosen, "digest", "2026-11-22T21:00:00+00:00")  # type: ignore[arg-type]


def test_choices_are_read_in_their_order(tmp_path: Path) -> None:
    assert read_preferences(tmp_path) == []
    made = [choice("q1"), choice("q2", "right"), choice("q3", "same"), choice("q4", "skip")]
    for one in made:
        add_preference(tmp_path, one)
    assert read_preferences(tmp_path) == made
    assert [one.preferred for one in made] == ["a", "b", None, None]


def test_the_last_choice_on_a_question_and_pair_counts(tmp_path: Path) -> None:
    swapped = Preference("q1", "b", "a", "left", "digest")
    for one in (choice("q1"), choice("q1", right="c"), swapped):
        add_preference(tmp_path, one)
    assert read_preferences(tmp_path) == [choice("q1", right="c"), swapped]


def test_an_undone_choice_is_none_and_its_line_stays(tmp_path: Path) -> None:
    for one in (choice("q1"), choice("q2"), choice("q1", "undo"), choice("q9", "undo")):
        add_preference(tmp_path, one)
    assert read_preferences(tmp_path) == [choice("q2")]
    assert len((tmp_path / PREFERENCES_FILE).read_text().splitlines()) == 4


def test_a_line_that_a_crash_has_cut_costs_itself_alone(tmp_path: Path) -> None:
    add_preference(tmp_path, choice("q1"))
    with (tmp_path / PREFERENCES_FILE).open("ab") as file:
        file.write(b'{"question_id": "q2", "le')
    add_preference(tmp_path, choice("q3"))
    with (tmp_path / PREFERENCES_FILE).open("ab") as file:
        file.write(b'[]\n{"question_id": 3}\n\xff\n')
    assert read_preferences(tmp_path) == [choice("q1"), choice("q3")]
