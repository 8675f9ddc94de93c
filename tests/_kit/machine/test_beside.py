from __future__ import annotations

import os
import threading
import time

import pytest

from rag_lab._kit.machine import beside as beside_module
from rag_lab._kit.machine.beside import beside


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside_module, "usable_cores", lambda: 2)


def who() -> dict[str, int]:
    return {"pid": os.getpid()}


def test_work_is_done_in_another_process_which_knows_what_this_one_does():
    known = {"here": [1, 2]}
    with beside(lambda: {**known, **who()}) as result:
        found = result()
    assert found["here"] == [1, 2] and found["pid"] != os.getpid()


def test_a_result_is_larger_than_a_pipe_holds():
    with beside(lambda: "ä" * 3_000_000) as result:
        assert result() == "ä" * 3_000_000


def test_what_failed_there_is_done_here_so_that_its_error_is_seen():
    def fails_there() -> dict[str, int]:
        raise KeyError(os.getpid())

    with pytest.raises(KeyError, match=str(os.getpid())), beside(fails_there) as result:
        result()


def test_nobody_waits_for_work_whose_block_has_failed(tmp_path):
    def slow() -> None:
        (tmp_path / "pid").write_text(str(os.getpid()))
        time.sleep(60)

    with pytest.raises(ValueError, match="the block"), beside(slow):
        while not (tmp_path / "pid").is_file() or not (tmp_path / "pid").read_text():
            time.sleep(0.01)
        raise ValueError("the block")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize("why", ["cores", "threads"])
def test_it_is_done_here_without_another_core_and_beside_other_threads(why, monkeypatch):
    stop = threading.Event()
    if why == "cores":
        monkeypatch.setattr(beside_module, "usable_cores", lambda: 1)
    else:
        threading.Thread(target=stop.wait, daemon=True).start()
    with beside(who) as result:
        assert result() == {"pid": os.getpid()}
    stop.set()
