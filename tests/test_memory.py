import os
import subprocess
import sys

from rag_lab.memory import Memory, batches


def test_what_is_stored_is_recalled_and_nothing_else(tmp_path):
    memory = Memory(tmp_path / "m.sqlite")
    memory.store("room", {"a": "1", "b": "2"})
    assert memory.recall(["a", "b", "c"]) == {"a": "1", "b": "2"}
    assert memory.counts() == {"room": 2}


def test_recall_takes_more_keys_than_sqlite_takes_parameters(tmp_path):
    memory = Memory(tmp_path / "m.sqlite")
    values = {f"k{i}": str(i) for i in range(1500)}
    memory.store("room", values)
    assert memory.recall(values) == values


def test_nothing_is_recalled_where_nothing_was_stored(tmp_path):
    memory = Memory(tmp_path / "absent" / "m.sqlite")
    assert memory.recall(["a"]) == {}
    assert not memory.path.exists()


def test_stored_keys_cannot_be_claimed(tmp_path):
    memory = Memory(tmp_path / "m.sqlite")
    memory.store("room", {"a": "1"})
    assert memory.claim(["a", "b", "c", "d"], limit=2) == ["b", "c"]


def test_a_live_process_keeps_its_claims_and_a_dead_one_loses_them(tmp_path):
    memory = Memory(tmp_path / "m.sqlite")
    script = (
        "import sys; from pathlib import Path; from rag_lab.memory import Memory;"
        "Memory(Path(sys.argv[1])).claim(['a'], 1); print('claimed', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, str(memory.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ) as other:
        assert other.stdout.readline() == b"claimed\n"
        assert memory.claim(["a", "b"], limit=2) == ["b"]
        other.kill()
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)  # dead, but nobody has noticed: a zombie
        assert memory.claim(["a", "b"], limit=2) == ["a", "b"]


def test_released_keys_are_free(tmp_path):
    memory = Memory(tmp_path / "m.sqlite")
    memory.claim(["a"], 1)
    memory.release(["a"])
    assert memory.recall(["a"]) == {}
    assert memory.claim(["a"], 1) == ["a"]


def test_batches():
    assert list(batches(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(batches([], 2)) == []
