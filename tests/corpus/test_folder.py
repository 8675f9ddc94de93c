import errno
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from rag_lab.corpus import folder as digests
from rag_lab.corpus.folder import file_digests, list_files, load_folder
from rag_lab.corpus.reading import ALLOWED
from rag_lab.corpus.rules import read_removed, removing
from rag_lab.errors import DatasetError


def test_documents_come_sorted_by_source_with_the_digest_of_each_file(corpus: Path) -> None:
    loaded = load_folder(corpus)
    sources = ["canteen.txt", "press/oil.txt", "press/relief_valve.md"]
    assert [document.source for document in loaded.documents] == sources
    assert loaded.digests == {name: hashlib.sha256((corpus / name).read_bytes()).hexdigest() for name in sources}
    assert loaded.problems == ()


def test_hidden_files_and_folders_are_ignored(corpus: Path) -> None:
    (corpus / ".hidden.txt").write_text("x")
    (corpus / ".git").mkdir()
    (corpus / ".git/config.txt").write_text("x")
    assert len(load_folder(corpus).documents) == 3
    assert load_folder(corpus).problems == ()


def test_an_unsupported_suffix_is_reported_once(corpus: Path) -> None:
    for name in ("a.pptx", "b.pptx", "c.png", "README"):
        (corpus / name).write_bytes(b"x")
    problems = [str(problem) for problem in list_files(corpus).problems]
    allowed = f"allowed are {ALLOWED}, and what corpus.readers names."
    assert problems == [
        f"{corpus}/README: files without a suffix are not read; {allowed}",
        f"{corpus}/a.pptx: files ending in .pptx are not read (and 1 more like it); {allowed}",
        f"{corpus}/c.png: files ending in .png are not read; {allowed}",
    ]


def test_links_that_leave_the_corpus_are_refused(corpus: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key.txt").write_text("secret")
    (corpus / "file.txt").symlink_to(secret / "key.txt")
    (corpus / "folder").symlink_to(secret)
    (corpus / "gone.txt").symlink_to(corpus / "nothing.txt")
    (corpus / "alias.txt").symlink_to(corpus / "canteen.txt")
    (corpus / "again").symlink_to(corpus / "press")
    listing = list_files(corpus)
    assert list(listing.files) == ["alias.txt", "canteen.txt", "press/oil.txt", "press/relief_valve.md"]
    reasons = {Path(problem.path).name: problem.reason for problem in listing.problems}
    assert "leaves the corpus" in reasons["file.txt"]
    assert "leaves the corpus" in reasons["folder"]
    assert "broken link" in reasons["gone.txt"]
    assert "not followed" in reasons["again"]


def test_what_may_not_be_read_is_named_and_the_rest_is_used(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rights are taken away by hand: whoever runs the tests may be one who may read everything."""
    listed = os.scandir

    def scandir(path: str) -> Any:
        if Path(path).name == "press":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return listed(path)

    (corpus / "salaries.txt").write_text("secret")
    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "salaries.txt")
    loaded = load_folder(corpus)
    assert [document.source for document in loaded.documents] == ["canteen.txt"]
    assert [str(problem) for problem in loaded.problems] == [
        f"{corpus}/press: the folder cannot be read (Permission denied): change its permissions.",
        f"{corpus}/salaries.txt: the file cannot be read (Permission denied): change its permissions.",
    ]


def test_a_corpus_that_is_itself_a_link_is_read(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(corpus)
    assert len(load_folder(tmp_path / "link").documents) == 3


def test_bad_files_are_named_and_the_rest_is_used(corpus: Path) -> None:
    (corpus / "empty.pdf").touch()
    (corpus / "empty.txt").touch()
    (corpus / "binary.md").write_bytes(b"\x00\x01\x02")
    (corpus / "german.txt").write_bytes("Schläuche prüfen und für die Maßnahme öffnen".encode("cp1252"))
    loaded = load_folder(corpus)
    assert [Path(problem.path).name for problem in loaded.problems] == [
        "binary.md", "empty.pdf", "empty.txt", "german.txt",
    ]  # fmt: skip
    assert {document.source for document in loaded.documents} == {
        "canteen.txt", "german.txt", "press/oil.txt", "press/relief_valve.md",
    }  # fmt: skip


def test_a_file_name_that_is_not_utf8_is_a_problem(corpus: Path) -> None:
    try:
        Path(os.fsdecode(os.fsencode(corpus) + b"/caf\xe9.txt")).write_text("x")
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    (problem,) = list_files(corpus).problems
    assert str(problem).encode() and "not UTF-8" in problem.reason


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="There is no corpus folder"):
        load_folder(tmp_path / "nothing")


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"holds no \.pdf"):
        load_folder(tmp_path)


def test_a_folder_of_bad_files_is_an_error_that_says_why(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").touch()
    with pytest.raises(DatasetError, match=r"(?s)None of 1 file can be used:.*a\.pdf: the PDF is empty"):
        load_folder(tmp_path)


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


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take files as old enough, since a test cannot set the time of a file's last change."""
    monkeypatch.setattr(digests, "_SETTLED_S", -1.0)


@pytest.mark.usefixtures("settled")
def test_a_file_is_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, cache = tmp_path / "a.txt", tmp_path / "home/cache.sqlite"
    path.write_bytes(b"abc")
    expected = {"a.txt": hashlib.sha256(b"abc").hexdigest()}
    assert file_digests({"a.txt": path}, cache) == expected
    monkeypatch.setattr(digests.hashlib, "file_digest", None)
    assert file_digests({"a.txt": path}, cache) == expected


@pytest.mark.usefixtures("settled")
def test_a_change_of_the_same_size_and_time_is_seen(tmp_path: Path) -> None:
    path, cache = tmp_path / "a.txt", tmp_path / "cache.sqlite"
    path.write_bytes(b"abc")
    before = path.stat()
    file_digests({"a.txt": path}, cache)
    path.unlink()
    path.write_bytes(b"xyz")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file_digests({"a.txt": path}, cache) == {"a.txt": hashlib.sha256(b"xyz").hexdigest()}


def test_a_file_written_just_now_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "_SETTLED_S", 60.0)
    path, cache = tmp_path / "a.txt", tmp_path / "cache.sqlite"
    path.write_bytes(b"abc")
    file_digests({"a.txt": path}, cache)
    assert not cache.exists()
