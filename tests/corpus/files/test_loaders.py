from __future__ import annotations

import os
from pathlib import Path

import pytest

from rag_lab.corpus.files.reader_process import LOADERS, load
from rag_lab.corpus.load.loader import LoadError

TEXT = [".txt", ".md", ".markdown", ".csv", ".tsv", ".html", ".htm"]


@pytest.mark.parametrize("suffix", TEXT)
def test_the_suffix_chooses_the_loader_whatever_its_case(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix.upper()}"
    path.write_text("# Title\nbody\n")
    (document,) = load(path, path.name).documents
    table = "| # Title |\n| --- |\n| body |"
    assert document.text == {".html": "# Title body", ".htm": "# Title body"}.get(
        suffix, table if suffix in (".csv", ".tsv") else "# Title\nbody"
    )


def test_text_is_normalized(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("Cafe\u0301  \n\n\n\nhydrau-\nlic \ufb01lter, 58\u00a0°C\u200b\n")
    assert load(path, "a.txt").documents[0].text == "Caf\u00e9\n\nhydraulic filter, 58 °C"


def test_a_line_that_is_no_prose_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("word " * 250_000)
    with pytest.raises(LoadError, match="a line of 1,250,000 characters"):
        load(path, "a.txt")


def test_more_text_than_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a line of words\n" * 700_000)
    with pytest.raises(LoadError, match="more than 10,000,000"):
        load(path, "a.txt")


@pytest.mark.parametrize("suffix", LOADERS)
def test_every_loader_refuses_an_empty_file_in_one_sentence(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.touch()
    with pytest.raises(LoadError, match=r"^the .* empty.*\.$"):
        load(path, path.name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("text")
    path.chmod(0)
    with pytest.raises(LoadError, match="permission"):
        load(path, path.name)
