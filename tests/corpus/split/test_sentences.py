from __future__ import annotations

from rag_lab.corpus.split.sentences import Sentences

TEXT = "One two three. Four five! Six seven eight nine? Ten."


def pieces(text: str, *numbers: int) -> list[str]:
    (spans,) = Sentences(*numbers).split([text])
    return [text[start:end] for start, end in spans]


def test_whole_sentences_up_to_the_words() -> None:
    assert pieces(TEXT, 5, 0, 1) == ["One two three. Four five!", "Six seven eight nine? Ten."]
    assert pieces(TEXT, 100, 0, 1) == [TEXT]


def test_neighbours_share_whole_sentences_within_the_overlap() -> None:
    assert pieces(TEXT, 6, 2, 1) == ["One two three. Four five!", "Four five! Six seven eight nine?", "Ten."]


def test_a_sentence_that_is_too_long_is_cut_between_words() -> None:
    assert pieces("a b c d e f g", 3, 1, 1) == ["a b c", "c d e", "e f g"]


def test_too_few_pieces_are_made_more_by_words() -> None:
    assert pieces("One two three four five six. Seven.", 100, 0, 3) == ["One two", "three four", "five six.", "Seven."]
    assert pieces("One.", 100, 0, 3) == ["One."]


def test_characters_count_as_words_where_a_script_has_no_spaces() -> None:
    assert pieces("油压机每天检查。阀门打开。停机。", 12, 0, 1) == ["油压机每天检查。", "阀门打开。停机。"]


def test_a_table_row_is_never_cut_and_a_long_one_stands_alone() -> None:
    row = "| one two three four. Five six | seven |"
    assert pieces(f"Before. It is.\n{row}\nAfter.", 3, 0, 1) == ["Before. It is.", row, "After."]
