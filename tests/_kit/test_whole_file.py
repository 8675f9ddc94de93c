from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep

import pytest

from rag_lab._kit.digest import whole_file, whole_folder


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


def make(target, made):
    with whole_folder(target) as partial:
        if partial:
            made.append(partial)
            partial.mkdir()
            sleep(0.05)
            (partial / "file").write_text("whole")
    return (target / "file").read_text()


def test_it_is_made_once_also_by_many_at_a_time(tmp_path):
    made = []
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: make(tmp_path / "deep" / "folder", made), range(4))) == ["whole"] * 4
    assert len(made) == 1


def test_a_failure_leaves_no_folder_and_the_next_one_makes_it(tmp_path):
    target = tmp_path / "folder"
    with pytest.raises(ZeroDivisionError), whole_folder(target) as partial:
        partial.mkdir()
        (partial / "half").write_text("half")
        raise ZeroDivisionError
    assert not target.exists()
    assert not list(tmp_path.glob("*.partial-*"))
    assert make(target, []) == "whole"


def test_what_a_killed_process_left_is_cleared_away(tmp_path):
    leftover = tmp_path / "folder.partial-0"
    leftover.mkdir()
    assert make(tmp_path / "folder", []) == "whole"
    assert not leftover.exists()
