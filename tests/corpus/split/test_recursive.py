from __future__ import annotations

from rag_lab.corpus.split.recursive import MarkdownSections, section_spans

TEXT = "# Press\n## Oil\nEvery year the oil is changed.\n## Valves\nRV1 opens.\n"


def test_a_piece_never_runs_over_a_heading() -> None:
    (spans,) = MarkdownSections(1000, 0).split([TEXT])
    assert [TEXT[start:end] for start, end in spans] == [
        "# Press\n## Oil\nEvery year the oil is changed.",
        "## Valves\nRV1 opens.",
    ]


def test_long_sections_are_cut_by_characters() -> None:
    (spans,) = MarkdownSections(30, 0).split([TEXT])
    assert len(spans) > 2 and all(end - start <= 30 for start, end in spans)


def test_sections_are_the_whole_text() -> None:
    spans = section_spans("before\n" + TEXT)
    assert [start for start, _ in spans] == [0, *(end for _, end in spans[:-1])]
    assert spans[-1][1] == len("before\n" + TEXT) and section_spans("") == []
