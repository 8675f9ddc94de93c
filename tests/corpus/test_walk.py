import errno
from pathlib import Path

import pytest

from rag_lab.corpus.folder import list_files
from rag_lab.corpus.rules import read_removed, removing
from rag_lab.errors import DatasetError


def remove(corpus: Path, *names: str) -> None:
    with removing(corpus, names, list_files(corpus).files):
        list_files(corpus)


def test_a_removed_file_stays_and_is_passed_over(corpus: Path) -> None:
    remove(corpus, "press/oil.txt")
    remove(corpus, "canteen.txt")
    listing = list_files(corpus)
    assert list(listing.files) == ["press/relief_valve.md"] and (corpus / "canteen.txt").exists()
    assert [Path(p.path).name for p in listing.problems if "delete its line" in p.reason] == ["canteen.txt", "oil.txt"]
    (corpus.parent / "removed.txt").write_text("press/oil.txt\n")
    assert "canteen.txt" in list_files(corpus).files


def test_a_file_that_is_removed_already_stays_removed(corpus: Path) -> None:
    remove(corpus, "canteen.txt")
    remove(corpus, "canteen.txt")
    assert read_removed(corpus) == {"canteen.txt"}


def test_one_wrong_name_removes_none(corpus: Path) -> None:
    with pytest.raises(DatasetError, match=r"'cantine\.txt' is no file of .*; did you mean 'canteen\.txt'"):
        remove(corpus, "press/oil.txt", "cantine.txt")
    assert not (corpus.parent / "removed.txt").exists()


def test_where_nothing_is_left_to_index_nothing_is_removed(corpus: Path) -> None:
    remove(corpus, "canteen.txt")
    with pytest.raises(DatasetError, match="holds no .* file"):
        remove(corpus, "press/oil.txt", "press/relief_valve.md")
    assert read_removed(corpus) == {"canteen.txt"}


@pytest.mark.parametrize("name", [" lead.txt", "line\u2028separator.txt", "return\r.txt"])
def test_odd_names_are_kept_to_the_letter(corpus: Path, name: str) -> None:
    (corpus / name).write_text("odd")
    remove(corpus, name)
    remove(corpus, "canteen.txt")
    assert read_removed(corpus) == {name, "canteen.txt"} and name not in list_files(corpus).files


def test_a_name_of_two_lines_is_refused(corpus: Path) -> None:
    (corpus / "two\nlines.txt").write_text("odd")
    with pytest.raises(DatasetError, match="holds a line break"):
        remove(corpus, "two\nlines.txt")


def test_a_line_that_names_no_file_is_told(corpus: Path) -> None:
    (corpus.parent / "removed.txt").write_text("canteen.text\r\npress/oil.txt\r\n")
    listing = list_files(corpus)
    assert "press/oil.txt" not in listing.files
    assert [p.reason for p in listing.problems if "'canteen.text' is no file of the corpus" in p.reason]


def test_a_folder_that_cannot_be_written_is_one_sentence(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(DatasetError, match="Cannot write .*removed.txt: No space left"):
        remove(corpus, "canteen.txt")
