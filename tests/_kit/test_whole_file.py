from __future__ import annotations

from pathlib import Path

import pytest

from rag_lab._kit.whole_file import whole_file


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    path.write_text("before")
    with whole_file(path) as one, whole_file(path) as other:
        one.write_text("one")
        other.write_text("other")
        assert path.read_text() == "before"
    assert path.read_text() == "one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    path.write_text("before")
    with pytest.raises(OSError, match="disk"), whole_file(path) as partial:
        partial.write_text("half")
        raise OSError("disk full")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
