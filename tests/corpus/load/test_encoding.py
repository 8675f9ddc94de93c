from __future__ import annotations

import pytest

from rag_lab.corpus.load.loader import LoadError
from rag_lab.corpus.load.text import decode


def test_lines_of_two_encodings_are_each_read_by_their_own() -> None:
    data = "Maßnahme\nplain\n".encode() + "Schläuche prüfen\n".encode("cp1252") + "Öl\n".encode()
    text, warning = decode(data)
    assert text == "Maßnahme\nplain\nSchläuche prüfen\nÖl\n"
    assert warning == "bytes that are not UTF-8 were read as cp1252 or \ufffd in line 3; save the file as UTF-8."


@pytest.mark.parametrize(
    "line",
    [
        "Die Schläuche müssen täglich geprüft werden: Maßnahme.",
        "Откройте предохранительный клапан.",
        "每天检查液压油的油位。",
    ],
)
def test_a_damaged_byte_costs_only_its_character(line: str) -> None:
    data = f"{line}\n{line}\n".encode()
    text, warning = decode(data + b"\xff" + line.encode())
    assert text == f"{line}\n{line}\n\ufffd{line}"
    assert "read as cp1252 or \ufffd in line 3;" in warning


def test_a_file_that_ends_within_a_character_is_read() -> None:
    whole = "每天检查液压油的油位。"
    assert decode(whole.encode()[:-1])[0] == whole[:-1] + "\ufffd"


def test_lines_of_each_kind_are_named_and_the_rest_counted() -> None:
    data = "Öl\n".encode() * 9 + "prüfen ".encode() + b"\xff\n" + "Schläuche\n".encode("cp1252") * 6
    text, warning = decode(data)
    assert text == "Öl\n" * 9 + "prüfen \ufffd\n" + "Schläuche\n" * 6
    assert "in lines 10, 11, 12, 13, 14 and 2 more;" in warning


def test_a_long_file_is_guessed_by_its_beginning() -> None:
    text = "Привет, это инструкция по эксплуатации станка.\n" * 40_000
    assert decode(text.encode("cp1251"))[0] == text


def test_a_guess_that_does_not_fit_the_rest_is_refused() -> None:
    data = "これは取扱説明書です。機械を止めてください。\n".encode("shift_jis") * 40_000 + b"\x00\xff\xfe\x81"
    with pytest.raises(LoadError, match="unknown encoding|binary"):
        decode(data)
