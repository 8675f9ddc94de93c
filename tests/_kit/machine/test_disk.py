from __future__ import annotations

from pathlib import Path

import pytest

from rag_lab._kit.machine.disk import bytes_on_disk, room_on_disk
from rag_lab.errors import RagLabError


def test_a_folder_takes_what_its_files_take_however_deep_and_a_file_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "below" / "deep").mkdir(parents=True)
    (tmp_path / "below" / "deep" / "b").write_bytes(b"45")
    assert bytes_on_disk(tmp_path) == 5
    assert bytes_on_disk(tmp_path / "a") == 3
    assert bytes_on_disk(tmp_path / "nowhere") == 0


def test_a_full_disk_is_a_sentence(tmp_path):
    told = r"There is no room for .*run \(No space left on device\); make room on that disk"
    with pytest.raises(RagLabError, match=told), room_on_disk(tmp_path / "run"):
        Path("/dev/full").write_text("x")


def test_another_error_stays_what_it_is(tmp_path):
    with pytest.raises(FileNotFoundError), room_on_disk():
        (tmp_path / "none").read_text()
