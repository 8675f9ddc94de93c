import os
from pathlib import Path

import pytest

from rag_lab.corpus.load.loader import LoadError, decode, load_markdown, load_text

GERMAN = "Die Maßnahme für das Öl: Schläuche prüfen. Überdruck ablassen, dann die Ventile öffnen und säubern.\n"


def write(tmp_path: Path, data: bytes, name: str = "a.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def test_text_is_kept_and_titled_by_its_first_line(tmp_path: Path) -> None:
    loaded = load_text(write(tmp_path, b"\n  Oil change \nEvery 4,000 hours.\n"), "press/a.txt")
    (document,) = loaded.documents
    assert (document.source, document.page, document.title) == ("press/a.txt", None, "Oil change")
    assert document.text == "\n  Oil change \nEvery 4,000 hours.\n"
    assert loaded.warnings == ()


def test_byte_order_mark_and_windows_line_ends_are_removed(tmp_path: Path) -> None:
    (document,) = load_text(write(tmp_path, b"\xef\xbb\xbfone\r\ntwo\rthree"), "a.txt").documents
    assert document.text == "one\ntwo\nthree"


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le", "utf-32"])
def test_another_encoding_is_guessed_and_said(tmp_path: Path, encoding: str) -> None:
    loaded = load_text(write(tmp_path, GERMAN.encode(encoding)), "a.txt")
    assert loaded.documents[0].text == GERMAN
    (warning,) = loaded.warnings
    assert "not UTF-8" in warning


@pytest.mark.parametrize(
    "text", ["Café", "58 °C", "El señor Núñez", "The operator’s guide – “manual”", "où ça, déjà vu"]
)
def test_short_western_text_is_read_as_windows_1252(tmp_path: Path, text: str) -> None:
    loaded = load_text(write(tmp_path, text.encode("cp1252")), "a.txt")
    assert loaded.documents[0].text == text
    assert "cp1252" in loaded.warnings[0]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Zażółć gęślą jaźń oraz łódź", "cp1250"),
        ("Привет, это инструкция по эксплуатации станка", "cp1251"),
        ("これは取扱説明書です。機械を止めてください。", "shift_jis"),
    ],
)
def test_other_scripts_are_guessed(tmp_path: Path, text: str, encoding: str) -> None:
    assert load_text(write(tmp_path, text.encode(encoding)), "a.txt").documents[0].text == text


@pytest.mark.parametrize("data", [b"", b" \n\t\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(LoadError, match="empty"):
        load_text(write(tmp_path, data), "a.txt")


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n" + os.urandom(500), b"abc\x00def", bytes(range(256)) * 8])
def test_a_binary_file_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(LoadError, match="binary"):
        load_text(write(tmp_path, data), "a.txt")


def test_markdown_is_titled_by_its_first_heading(tmp_path: Path) -> None:
    text = "Draft\n\n## Hot press P-11 ##\n\n# Later\n"
    (document,) = load_markdown(write(tmp_path, text.encode(), "a.md"), "a.md").documents
    assert document.title == "Hot press P-11"
    assert document.text == text


def test_markdown_without_a_heading_is_titled_by_its_first_line(tmp_path: Path) -> None:
    (document,) = load_markdown(write(tmp_path, b"No heading\n#hashtag\n", "a.md"), "a.md").documents
    assert document.title == "No heading"


def test_front_matter_gives_no_title(tmp_path: Path) -> None:
    text = b"---\ntitle: Manual\n# internal\n---\n\nFirst line\n"
    (document,) = load_markdown(write(tmp_path, text, "a.md"), "a.md").documents
    assert document.title == "First line"
    assert document.text == text.decode()


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
