from __future__ import annotations

import os
from pathlib import Path

import pytest

from rag_lab.corpus.base import LoadError
from rag_lab.corpus.loaders import LOADERS, load


@pytest.mark.parametrize("suffix", [suffix for suffix in LOADERS if suffix != ".pdf"])
def test_the_suffix_chooses_the_loader_whatever_its_case(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix.upper()}"
    path.write_text("# Title\nbody\n")
    assert load(path, path.name).documents[0].title == ("# Title" if suffix == ".txt" else "Title")


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
