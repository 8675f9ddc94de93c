from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.corpus.load.delimited import MAX_ROW_CHARS, CellBudget, markdown_table
from rag_lab.corpus.load.loader import LoadError
from rag_lab.corpus.spans import row_spans

cells = st.text(st.sampled_from("ab |\n\\#-"), max_size=6)


def test_rows_are_lines_with_what_is_empty_left_out() -> None:
    rows = [["", "", ""], ["Part", "", " Torque\nNm "], ["M6", "", "9"], ["", "", ""], ["a|b", ""]]
    assert markdown_table(rows) == (["| Part | Torque Nm |", "| --- | --- |", "| M6 | 9 |", "| a\\|b |  |"], 0)
    assert markdown_table([[], [" "]]) == ([], 0)


def test_a_row_beyond_all_bounds_is_left_out_and_counted() -> None:
    lines, n_too_long = markdown_table([["h"], ["x" * (MAX_ROW_CHARS + 1)], ["y"]])
    assert (lines, n_too_long) == (["| h |", "| --- |", "| y |"], 1)


def test_the_bars_between_cells_count_for_the_length_of_a_row() -> None:
    assert markdown_table([["h"], ["x"] * (MAX_ROW_CHARS // 4 + 1), ["y"]]) == (["| h |", "| --- |", "| y |"], 1)


def test_a_table_that_one_wide_row_would_blow_up_is_refused_before_it_is_filled_up() -> None:
    wide = ["b"] * 4_000
    markdown_table([*[["a"]] * 800, wide])
    with pytest.raises(LoadError, match="more than 3,333,333 cells"):
        markdown_table([*[["a"]] * 1_000, wide])


def test_the_tables_of_a_file_share_their_budget() -> None:
    rows, budget = [*[["a"]] * 500, ["b"] * 4_000], CellBudget()
    markdown_table(rows, budget)
    with pytest.raises(LoadError, match="cells"):
        markdown_table(rows, budget)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(cells, max_size=4), max_size=6))
def test_every_line_of_a_table_is_found_again_as_a_row(rows: list[list[str]]) -> None:
    lines, _ = markdown_table(rows)
    text = "\n".join(["before", *lines, "after"])
    assert [text[start:end] for start, end in row_spans(text)] == lines


def test_only_lines_within_bars_are_rows() -> None:
    text = "a | b\n  | c | d |  \n|\n| open\n|x|"
    assert [text[start:end] for start, end in row_spans(text)] == ["| c | d |", "|x|"]
