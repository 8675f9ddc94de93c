import asyncio
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from doubles import Shout

from rag_lab._kit.machine import Process
from rag_lab.errors import DamagedFile, RagLabError
from rag_lab.evaluation.judge_queue import JudgeQueue, JudgeReplies
from rag_lab.memory.results import Dropped, Memory, batches
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.remembered_vectors import RememberedEmbedder, RememberedScorer
from rag_lab.records import Question, Trace
from rag_lab.stages.run_stage import run_stage
from rag_lab.testing import HashEmbedder, OverlapScorer, ScriptedChat


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
    memory, me = Memory(tmp_path / "m.sqlite"), Process.of()
    claim_by(memory, me._replace(pid=os.getppid(), began="1"))
    assert memory.claim(["a"], 1) == ["a"]


@pytest.mark.parametrize("change", [{"host": "4f0c2a1b77de"}, {"system": "before the last start of this machine"}])
def test_a_process_that_cannot_be_asked_keeps_its_claims_for_as_long_as_it_renews_them(tmp_path, change):
    memory, other = Memory(tmp_path / "m.sqlite"), Process.of()._replace(pid=57, **change)
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


PAIRS = [("the oven", "the oven trips"), ("the press", "an oven")]
REQUEST = ChatRequest((Message("user", "Is it so?"),), max_tokens=8)
OTHER = """
import sys
from pathlib import Path
from test_results import PAIRS, REQUEST, judged, scored
from rag_lab.memory.results import Memory

def hold():
    print("computing", flush=True)
    input()

memory = Memory(Path(sys.argv[2]))
print({"scores": lambda: scored(memory, hold), "judge": lambda: judged(memory, hold)}[sys.argv[1]](), flush=True)
"""


class Held(OverlapScorer):
    def __init__(self, on_call):
        super().__init__()
        self.on_call = on_call

    def score(self, pairs):
        self.on_call()
        return super().score(pairs)


def scored(memory, on_call):
    return RememberedScorer(Held(on_call), memory).score(PAIRS)


def judged(memory, on_call):
    judge = ScriptedChat(lambda request: on_call() or "yes")
    return asyncio.run(JudgeQueue(judge, JudgeReplies(judge, memory)).ask(REQUEST)).text


@pytest.mark.parametrize(("what", "run"), [("scores", scored), ("judge", judged)])
def test_what_another_process_is_computing_is_waited_for_and_not_computed_again(tmp_path, monkeypatch, what, run):
    path, asked = tmp_path / "memory.sqlite", []
    command = [sys.executable, "-c", OTHER, what, str(path)]
    with subprocess.Popen(
        command,
        cwd=Path(__file__).parent,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout.readline() == "computing\n"

        def let_the_other_go_on(_):
            if not other.stdin.closed:
                other.communicate("\n")

        monkeypatch.setattr(time, "sleep", let_the_other_go_on)
        result = run(Memory(path), lambda: asked.append(1))
        let_the_other_go_on(0)
    assert asked == []
    assert result == run(Memory(tmp_path / "empty.sqlite"), lambda: None)


def flip(path, needle):
    """Flip one bit of the only place where these bytes stand in a database's file."""
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(path.read_bytes())
    assert content.count(needle) == 1
    content[content.index(needle) + len(needle) // 2] ^= 1
    path.write_bytes(content)


def test_a_flipped_bit_is_not_recalled_and_can_be_claimed_again(tmp_path):
    memory = Memory(tmp_path / "m.sqlite")
    memory.store("room", {"a": '{"value": 0.75}', "b": '{"value": 0.25}'})
    flip(memory.path, b'{"value": 0.75}')
    assert memory.recall(["a", "b"]) == {"b": '{"value": 0.25}'}
    assert memory.claim(["a", "b"], 2) == ["a"]
    assert memory.counts() == {"room": 1}
    assert Dropped.n == 1
    memory.store("room", {"a": '{"value": 0.75}'})
    assert memory.recall(["a"]) == {"a": '{"value": 0.75}'}
    assert Dropped.n == 1


@pytest.mark.parametrize(
    "change",
    [
        "value = CAST(X'FF00FE' AS TEXT)", "value = 7", "value = ''", "value = '{\"value\": 1.0}'", "sum = X'00'",
        "sum = CAST(X'FF00FE' AS TEXT)", "sum = 3", "key = 'b'",
    ],
)  # fmt: skip
def test_whatever_was_changed_is_no_result(tmp_path, change):
    memory = Memory(tmp_path / "m.sqlite")
    memory.store("room", {"a": '{"value": 0.75}'})
    with sqlite3.connect(memory.path) as database:
        database.execute(f"UPDATE remembered SET {change}")
    assert memory.recall(["a", "b"]) == {}
    assert memory.claim(["a", "b"], 2) == ["a", "b"]
    assert Dropped.n == 1


def test_a_damaged_stage_result_is_computed_again(tmp_path):
    memory = Memory(tmp_path / "m.sqlite")
    asked = [Trace(Question("q1", "how hot is it")), Trace(Question("q2", "how wide is it"))]
    whole = run_stage(Shout(), asked, memory)
    flip(memory.path, b"HOW HOT IS IT")
    again = run_stage(Shout(), asked, memory)
    assert [trace.search_query for trace in again] == [trace.search_query for trace in whole]
    assert [trace.stages[0].remembered for trace in again] == [False, True]
    assert [trace.stages[0].remembered for trace in run_stage(Shout(), asked, memory)] == [True, True]


def test_a_damaged_vector_is_made_again(tmp_path):
    inner = HashEmbedder(8)
    embedder = RememberedEmbedder(inner, tmp_path / "vectors.sqlite")
    whole = embedder.embed_documents(["oil", "ram"])
    flip(embedder.path, whole[1].astype("<f4").tobytes())
    assert np.array_equal(embedder.embed_documents(["oil", "ram"]), whole)
    assert sorted(inner.documents) == ["oil", "ram", "ram"]
    assert Dropped.n == 1


def test_it_is_said_once_a_process_how_many_there_were(tmp_path):
    memory = Memory(tmp_path / "m.sqlite")
    memory.store("room", dict.fromkeys("abc", "1"))
    with sqlite3.connect(memory.path) as database:
        database.execute("UPDATE remembered SET value = '2'")
    script = (
        "import sys; from rag_lab.memory.results import Memory; memory = Memory(sys.argv[1]);"
        "assert memory.recall(['a']) == {}; assert memory.recall(['a', 'b', 'c']) == {}; print('done')"
    )
    command = [sys.executable, "-c", script, str(memory.path)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=True)
    assert done.stderr == "3 stored results were damaged and had to be computed again.\n"


@pytest.mark.parametrize("part", [0.3, 0.6, 0.9])
def test_a_file_that_was_cut_is_one_sentence_that_names_it(tmp_path, part):
    memory = Memory(tmp_path / "m.sqlite")
    values = {f"key{n}": "x" * 500 for n in range(400)}
    memory.store("room", values)
    with sqlite3.connect(memory.path) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = memory.path.read_bytes()
    memory.path.write_bytes(content[: int(len(content) * part)])
    with pytest.raises(DamagedFile, match=r"m\.sqlite is damaged \(.*malformed.*\); delete it with its -wal and -shm"):
        memory.recall(list(values))
