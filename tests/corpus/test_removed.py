from __future__ import annotations

from pathlib import Path

import pytest

from rag_lab.corpus.folder import list_files
from rag_lab.corpus.removed import read_removed, remove
from rag_lab.errors import DatasetError


def test_a_removed_file_stays_and_is_passed_over(corpus: Path) -> None:
    remove(corpus, "press/oil.txt", list_files(corpus).files)
    remove(corpus, "canteen.txt", list_files(corpus).files)
    listing = list_files(corpus)
    assert list(listing.files) == ["press/relief_valve.md"] and (corpus / "canteen.txt").exists()
    assert [Path(p.path).name for p in listing.problems if "delete its line" in p.reason] == ["canteen.txt", "oil.txt"]
    (corpus.parent / "removed.txt").write_text("press/oil.txt\n")
    assert "canteen.txt" in list_files(corpus).files


def test_what_is_not_there_cannot_be_removed(corpus: Path) -> None:
    with pytest.raises(DatasetError, match=r"did you mean 'canteen\.txt'"):
        remove(corpus, "cantine.txt", list_files(corpus).files)
    assert read_removed(corpus) == frozenset()


def test_the_last_file_cannot_be_removed(corpus: Path) -> None:
    with pytest.raises(DatasetError, match="last file"):
        remove(corpus, "a.txt", ["a.txt"])
