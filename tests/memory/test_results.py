import os
import sqlite3
import subprocess
import sys
import time

import pytest

from rag_lab._kit.machine import Process
from rag_lab.errors import DamagedFile, RagLabError
from rag_lab.memory.results import Memory, batches


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
        "import sys; from pathlib import Path; from rag_lab.memory.results import Memory;"
        "Memory(Path(sys.argv[1])).claim(['a'], 1); print('claimed', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, str(memory.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ) as other:
        assert other.stdout.readline() == b"claimed\n"
        age(memory, seen=0)  # it runs, whatever keeps it from renewing its claim
        assert memory.claim(["a", "b"], limit=2) == ["b"]
        other.kill()
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)  # dead, but nobody has noticed: a zombie
        assert memory.claim(["a", "b"], limit=2) == ["a", "b"]


def claim_by(memory, process, seen_s_ago=0.0):
    """Claim `a` for another process."""
    memory.claim(["a"], 1)
    with sqlite3.connect(memory.path) as database:
        change = "UPDATE held SET host = ?, system = ?, pid = ?, began = ?, seen = ?"
        database.execute(change, (*process, time.time() - seen_s_ago))


def test_a_process_that_has_the_number_of_a_dead_one_does_not_hold_its_claims(tmp_path):
    memory, me = Memory(tmp_path / "m.sqlite"), Process.this()
    claim_by(memory, me._replace(pid=os.getppid(), began="1"))
    assert memory.claim(["a"], 1) == ["a"]


@pytest.mark.parametrize("change", [{"host": "4f0c2a1b77de"}, {"system": "before the last start of this machine"}])
def test_a_process_that_cannot_be_asked_keeps_its_claims_for_as_long_as_it_renews_them(tmp_path, change):
    memory, other = Memory(tmp_path / "m.sqlite"), Process.this()._replace(pid=57, **change)
    claim_by(memory, other, seen_s_ago=50)
    assert memory.claim(["a"], 1) == []
    assert memory.holders(["a", "b"]) == [other]
    claim_by(Memory(tmp_path / "void.sqlite"), other, seen_s_ago=70)
    assert Memory(tmp_path / "void.sqlite").claim(["a"], 1) == ["a"]


def test_claims_are_renewed_while_one_batch_lasts_and_void_soon_after_a_kill(tmp_path, monkeypatch):
    monkeypatch.setattr(Process, "runs", lambda self: None)  # as if it ran on another host
    memory = Memory(tmp_path / "m.sqlite")
    script = (
        "import sys; from pathlib import Path; from rag_lab.memory import results; results._RENEW_S = 0.2;"
        "m = results.Memory(Path(sys.argv[1])); keys = m.claim(['a'], 1); kept = m.keeping(keys); kept.__enter__();"
        "print('claimed', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, str(memory.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ) as other:
        assert other.stdout.readline() == b"claimed\n"
        age(memory, seen=0)
        while not age(memory):
            time.sleep(0.1)
        assert memory.claim(["a"], limit=1) == []
        other.kill()
        other.wait()
    age(memory, seen=time.time() - 70)
    assert memory.claim(["a"], limit=1) == ["a"]


def age(memory, seen=None):
    """Set when the only claim was renewed last, and return when it was."""
    with sqlite3.connect(memory.path) as database:
        if seen is not None:
            database.execute("UPDATE held SET seen = ?", (seen,))
        return database.execute("SELECT seen FROM held").fetchone()[0]


def test_what_another_has_claimed_since_is_not_given_up_for_it(tmp_path):
    memory = Memory(tmp_path / "m.sqlite")
    with memory.keeping(["a"]):
        claim_by(memory, Process("4f0c2a1b77de", "", 57, ""))
    assert memory.claim(["a"], 1) == []


def test_a_file_that_holds_something_else_is_one_sentence(tmp_path):
    (tmp_path / "m.sqlite").write_text("garbage" * 200)
    with pytest.raises(DamagedFile, match=r"m\.sqlite is damaged \(file is not a database\); delete it"):
        Memory(tmp_path / "m.sqlite").recall(["a"])
    with pytest.raises(RagLabError, match="cannot be used: Not a directory; see that its folder"):
        Memory(tmp_path / "m.sqlite/below/m.sqlite").claim(["a"], 1)


def test_batches():
    assert list(batches(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(batches([], 2)) == []
