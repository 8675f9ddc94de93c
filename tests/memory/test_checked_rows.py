"""Stored results that were damaged on disk: dropped, counted once, computed again, and never believed."""

import os
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from doubles import Shout

from rag_lab.errors import DamagedFile
from rag_lab.memory.results import Dropped, Memory
from rag_lab.models.remembered_vectors import RememberedEmbedder
from rag_lab.records import Question, Trace
from rag_lab.stages.run_stage import run_stage
from rag_lab.testing import HashEmbedder


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
