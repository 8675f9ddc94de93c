from __future__ import annotations

from pathlib import Path

from rag_lab._kit.machine.disk import bytes_on_disk


def test_a_folder_takes_what_its_files_take_however_deep_and_a_file_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "below" / "deep").mkdir(parents=True)
    (tmp_path / "below" / "deep" / "b").write_bytes(b"45")
    assert bytes_on_disk(tmp_path) == 5
    assert bytes_on_disk(tmp_path / "a") == 3
    assert bytes_on_disk(tmp_path / "nowhere") == 0
