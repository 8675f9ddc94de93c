from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from rag_lab.corpus.load import spreadsheet as archive
from rag_lab.corpus.load.loader import LoadError
from rag_lab.corpus.load.spreadsheet import opened_archive


def packed(path: Path, name: str, data: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, data)
    return path


@pytest.mark.parametrize(
    ("name", "n_bytes"),
    [
        ("xl/_rels/workbook.xml.rels", 11 * 2**20),
        ("[Content_Types].xml", 11 * 2**20),
        ("xl/sheet.bin", 101 * 2**20),
        ("xl/media/said_to_be_a_picture.png", 101 * 2**20),
    ],
)
def test_a_part_that_unpacks_to_too_much_is_refused_whatever_its_name(tmp_path: Path, name: str, n_bytes: int) -> None:
    path = packed(tmp_path / "a.xlsx", name, bytes(n_bytes))
    with pytest.raises(LoadError, match=r"unpacks to 1?\d1 MiB of "), opened_archive(path, "workbook"):
        pass


def test_a_picture_may_be_larger_than_a_part_that_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_MAX_PART_BYTES", 1000)
    with opened_archive(packed(tmp_path / "a.docx", "word/media/film.mp4", os.urandom(2000)), "document") as opened:
        assert opened.namelist() == ["word/media/film.mp4"]


@pytest.mark.parametrize(("tag", "n"), [(b"<p/>", 40), (b"<p a='1' b=\"2\"/>", 14)])
def test_millions_of_tags_and_attributes_are_refused_before_they_are_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tag: bytes, n: int
) -> None:
    monkeypatch.setattr(archive.Archive, "max_tags", 50)
    with opened_archive(packed(tmp_path / "a.docx", "a.xml", b"<a>" + tag * n + b"</a>"), "document") as opened:
        assert len(archive.parsed_part(opened, "a.xml", "document")) == n
        with pytest.raises(LoadError, match="more than 50 XML tags and attributes"):
            archive.parsed_part(opened, "a.xml", "document")
