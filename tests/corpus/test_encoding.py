from __future__ import annotations

import pytest

from rag_lab.corpus.base import LoadError
from rag_lab.corpus.encoding import decode


def test_lines_of_two_encodings_are_each_read_by_their_own() -> None:
    data = "Maßnahme\nplain\n".encode() + "Schläuche prüfen\n".encode("cp1252") + "Öl\n".encode()
    text, warning = decode(data)
    assert text == "Maßnahme\nplain\nSchläuche prüfen\nÖl\n"
    assert warning.startswith("lines 3 are not UTF-8") or warning.startswith("line 3 is not UTF-8")


def test_a_long_file_is_guessed_by_its_beginning() -> None:
    text = "Привет, это инструкция по эксплуатации станка.\n" * 40_000
    assert decode(text.encode("cp1251"))[0] == text


def test_a_guess_that_does_not_fit_the_rest_is_refused() -> None:
    data = "これは取扱説明書です。機械を止めてください。\n".encode("shift_jis") * 40_000 + b"\x00\xff\xfe\x81"
    with pytest.raises(LoadError, match="unknown encoding|binary"):
        decode(data)
