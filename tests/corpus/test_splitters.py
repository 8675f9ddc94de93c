from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from rag_lab.corpus.splitters import MarkdownSections, Semantic, Sentences, section_spans
from rag_lab.models.protocols import Vectors

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


def test_sentences_that_make_too_few_pieces_are_cut_between_words() -> None:
    assert pieces("One two three four. Five six seven.", 5, 1, 3) == ["One two three four. Five", "Five six seven."]
    assert pieces("One two three four five six. Seven.", 100, 0, 3) == ["One two three four five six. Seven."]


sizes = st.integers(5, 30).flatmap(lambda most: st.tuples(st.just(most), st.integers(0, most - 1)))


@given(lengths=st.lists(st.integers(1, 60), min_size=1, max_size=12), size=sizes, min_pieces=st.integers(1, 12))
@example(lengths=[41], size=(100, 20), min_pieces=3)  # 29 pieces of 13 words, once
def test_cut_between_words_a_text_makes_no_more_pieces_than_it_has_room_for(
    lengths: list[int], size: tuple[int, int], min_pieces: int
) -> None:
    most, overlap = size
    text = " ".join(" ".join(["word"] * length) + "." for length in lengths)
    whole = pieces(text, most, overlap, 1)
    found = pieces(text, most, overlap, min_pieces)
    if len(whole) >= min_pieces:
        assert found == whole
    else:
        assert len(found) == max(1, ceil((sum(lengths) - overlap) / (most - overlap)))
        assert all(len(piece.split()) == most for piece in found[:-1])


@given(n=st.integers(1, 80), below=st.integers(0, 60), min_pieces=st.integers(1, 5))
def test_a_text_of_few_words_stays_whole(n: int, below: int, min_pieces: int) -> None:
    text = "One. " * n
    found = pieces(text, 6, 2, min_pieces, below)
    assert (found == [text.strip()]) is (n < below or n <= 6)


def test_characters_count_as_words_where_a_script_has_no_spaces() -> None:
    assert pieces("油压机每天检查。阀门打开。停机。", 12, 0, 1) == ["油压机每天检查。", "阀门打开。停机。"]


def test_a_table_row_is_never_cut_and_a_long_one_stands_alone() -> None:
    row = "| one two three four. Five six | seven |"
    assert pieces(f"Before. It is.\n{row}\nAfter.", 3, 0, 1) == ["Before. It is.", row, "After."]


class Subjects:
    """Embeds a text by which of two subjects its words name; counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def identity(self) -> Mapping[str, Any]:
        return {"name": "subjects"}

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.calls += 1
        vectors = np.array([[text.count("oil") + 1e-3, text.count("soup") + 1e-3] for text in texts], np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    embed_queries = embed_documents


PROSE = "The oil is old. The oil is hot. Change the oil. The soup is hot. The soup is good. Eat the soup."


def test_the_cut_is_where_the_subject_changes() -> None:
    embedder = Subjects()
    found = Semantic(embedder, 80, 1000, 0).split([PROSE, "", "One sentence."])
    pieces = [PROSE[start:end] for start, end in found[0]]
    assert pieces == [
        "The oil is old. The oil is hot. Change the oil.",
        "The soup is hot. The soup is good. Eat the soup.",
    ]
    assert found[1:] == [[], [(0, 13)]]
    assert embedder.calls == 1


def test_a_long_run_is_cut_by_characters() -> None:
    (spans,) = Semantic(Subjects(), 100, 50, 0).split([PROSE])
    assert len(spans) > 1 and all(end - start <= 50 for start, end in spans)


SECTIONED = "# Press\n## Oil\nEvery year the oil is changed.\n## Valves\nRV1 opens.\n"


def test_a_piece_never_runs_over_a_heading() -> None:
    (spans,) = MarkdownSections(1000, 0).split([SECTIONED])
    assert [SECTIONED[start:end] for start, end in spans] == [
        "# Press\n## Oil\nEvery year the oil is changed.",
        "## Valves\nRV1 opens.",
    ]


def test_long_sections_are_cut_by_characters() -> None:
    (spans,) = MarkdownSections(30, 0).split([SECTIONED])
    assert len(spans) > 2 and all(end - start <= 30 for start, end in spans)


def test_sections_are_the_whole_text() -> None:
    spans = section_spans("before\n" + SECTIONED)
    assert [start for start, _ in spans] == [0, *(end for _, end in spans[:-1])]
    assert spans[-1][1] == len("before\n" + SECTIONED) and section_spans("") == []
