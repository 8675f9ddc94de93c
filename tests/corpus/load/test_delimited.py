from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.corpus.load.loader import LoadError
from rag_lab.corpus.load.tables import MAX_ROW_CHARS, CellBudget, load_delimited, markdown_table
from rag_lab.corpus.spans import row_spans


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "Bolt,Nm\nM6,9\n"),
        ("a.csv", "Bolt;Nm\nM6;9\n"),
        ("a.csv", "Bolt\tNm\nM6\t9\n"),
        ("a.tsv", "Bolt\tNm\nM6\t9\n"),
        ("a.csv", '"Bolt"|"Nm"\n"M6"|"9"\n'),
        ("a.csv", "Bolt,Nm\r\n\r\nM6,9\r\n,\r\n"),
        ("a.csv", "sep=;\nBolt;Nm\nM6;9\n"),
        ("a.csv", '"sep=|"\nBolt|Nm\nM6|9\n'),
        ("a.tsv", "sep=,\nBolt,Nm\nM6,9\n"),
    ],
)
def test_the_separator_is_found_out(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode())
    (document,) = load_delimited(path, name).documents
    assert document.text == "| Bolt | Nm |\n| --- | --- |\n| M6 | 9 |"


def test_decimal_commas_do_not_hide_the_semicolon(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Teil;Länge;Breite\nA;1,5;2,25\nB;3;4\n", encoding="cp1252")
    loaded = load_delimited(path, "a.csv")
    assert "| A | 1,5 | 2,25 |" in loaded.documents[0].text
    assert "cp1252" in loaded.warnings[0]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('Part;Note\nPump;"first\nsecond"\nValve;ok\n', ["Part | Note", "Pump | first second", "Valve | ok"]),
        ("1,5;2,5;3,5\n4,5;5,5;6,5\n", ["1,5 | 2,5 | 3,5", "4,5 | 5,5 | 6,5"]),
        ("Länge, mm;Breite, mm\n1,5;2,5\n", ["Länge, mm | Breite, mm", "1,5 | 2,5"]),
        ("Report of 2024\n\nPart;Nm\nM6;9\n", ["Report of 2024 | ", "Part | Nm", "M6 | 9"]),
        ("Part;Nm;Note\nM6;9,5;dry\nTotal\n", ["Part | Nm | Note", "M6 | 9,5 | dry", "Total |  | "]),
        ("id,tags\n1,a;b\n2,c;d\n", ["id | tags", "1 | a;b", "2 | c;d"]),
        ('name, note\n"Pump", "a, b"\n', ["name | note", "Pump | a, b"]),
        ("1,2,3\n4,5,6\n", ["1 | 2 | 3", "4 | 5 | 6"]),
        ("Comment\nHello, world\nNo comma\n", ["Comment", "Hello, world", "No comma"]),
    ],
)
def test_the_separator_is_what_parts_the_rows_alike(tmp_path: Path, text: str, rows: list[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    lines = load_delimited(path, "a.csv").documents[0].text.split("\n")
    assert [line[2:-2] for line in (lines[0], *lines[2:])] == rows


def test_a_row_that_the_sample_cuts_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a|b\n" + "1,5,6,7|" + "x" * 30_000)
    assert load_delimited(path, "a.csv").documents[0].text.startswith("| a | b |")


def test_quoted_line_ends_stay_in_their_row(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('Part,Note\nPump,"first\nsecond"\n')
    assert load_delimited(path, "a.csv").documents[0].text.split("\n")[2] == "| Pump | first second |"


def test_a_row_that_is_too_long_is_left_out_and_said(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"Part,Note\nPump,{'x' * 30_000}\nValve,y\n")
    loaded = load_delimited(path, "a.csv")
    assert loaded.documents[0].text.endswith("| Valve | y |")
    assert loaded.warnings == ("1 row of more than 20,000 characters left out; shorten the cells.",)


def test_a_table_without_cells_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(",,\n,,\n")
    with pytest.raises(LoadError, match="empty"):
        load_delimited(path, "a.csv")


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
