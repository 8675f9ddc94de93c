import hashlib
import os
from pathlib import Path

import pytest

from rag_lab.corpus import folder as digests
from rag_lab.corpus.folder import file_digests


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take files as old enough, since a test cannot set the time of a file's last change."""
    monkeypatch.setattr(digests, "_SETTLED_S", -1.0)


def test_a_file_is_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, cache = tmp_path / "a.txt", tmp_path / "home/cache.sqlite"
    path.write_bytes(b"abc")
    expected = {"a.txt": hashlib.sha256(b"abc").hexdigest()}
    assert file_digests({"a.txt": path}, cache) == expected
    monkeypatch.setattr(digests.hashlib, "file_digest", None)
    assert file_digests({"a.txt": path}, cache) == expected


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
