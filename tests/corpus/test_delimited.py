from __future__ import annotations

from pathlib import Path

import pytest

from rag_lab.corpus.base import LoadError
from rag_lab.corpus.delimited import load_delimited


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "Bolt,Nm\nM6,9\n"),
        ("a.csv", "Bolt;Nm\nM6;9\n"),
        ("a.csv", "Bolt\tNm\nM6\t9\n"),
        ("a.tsv", "Bolt\tNm\nM6\t9\n"),
        ("a.csv", '"Bolt"|"Nm"\n"M6"|"9"\n'),
        ("a.csv", "Bolt,Nm\r\n\r\nM6,9\r\n,\r\n"),
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
