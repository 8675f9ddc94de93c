"""The two kinds of store keep, claim and refuse alike; a file that is damaged is a sentence."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from doubles import Shout
from other_user import as_nobody, needs_root
from postgres import needs_postgres

from rag_lab._kit.machine import Process
from rag_lab.errors import ConfigError, RagLabError
from rag_lab.memory.ledger import Caller, Failing, Ledger, Made, Used
from rag_lab.memory.open_store import VARIABLE, WAIT_VARIABLE, opened, opened_schema, opened_store
from rag_lab.memory.results import Memory, Work, checksum
from rag_lab.models.remembered_vectors import RememberedEmbedder
from rag_lab.models.remote.retries import RateLimitStore, Rates
from rag_lab.records import Question, Trace
from rag_lab.stages.run_stage import run_stage
from rag_lab.testing import HashEmbedder

CLAIMS = """
import sys
from pathlib import Path
from rag_lab.memory.results import Memory
memory = Memory(Path(sys.argv[1]))
while mine := memory.claim([f"k{n}" for n in range(300)], 7):
    memory.store("room", {key: '"x"' for key in mine})
    print(*mine, flush=True)
"""
CLAIM_AND_WAIT = """
import sys
from pathlib import Path
from rag_lab.memory.results import Memory
Memory(Path(sys.argv[1])).claim(["a"], 1)
print("claimed", flush=True)
sys.stdin.read()
"""


def test_what_is_stored_is_recalled_also_over_what_was_there(folder):
    memory = Memory(folder / "m.sqlite")
    assert memory.recall(["a"]) == {} and memory.counts() == {}
    values = {f"k{n}": f'"ä {n} \\u0000 100%?"' for n in range(1200)}
    memory.store("room", values)
    memory.store("other", {"k0": '"new"'})
    assert memory.recall([*values, "absent"]) == values | {"k0": '"new"'}
    assert memory.counts() == {"other": 1, "room": 1199}
    assert (folder / "m.sqlite").exists() is (VARIABLE not in os.environ)


def test_files_have_nothing_in_common(folder):
    Memory(folder / "one.sqlite").store("room", {"a": "1"})
    assert Memory(folder / "other.sqlite").recall(["a"]) == {}


def test_a_value_that_was_damaged_is_dropped_and_can_be_claimed_again(folder):
    memory = Memory(folder / "m.sqlite")
    memory.store("room", {"a": '"right"', "b": '"kept"'})
    with memory.opened() as database, database:
        database.execute("UPDATE remembered SET value = ? WHERE key = ?", ('"wrong"', "a"))
    assert memory.recall(["a", "b"]) == {"b": '"kept"'}
    assert memory.claim(["a", "b"], 2) == ["a"]


def test_processes_that_share_it_compute_nothing_twice(folder):
    command = [sys.executable, "-c", CLAIMS, str(folder / "m.sqlite")]
    others = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    done = [key for other in others for key in other.communicate()[0].split()]
    assert sorted(done) == sorted(f"k{n}" for n in range(300))


def test_a_killed_process_loses_its_claims(folder):
    memory = Memory(folder / "m.sqlite")
    command = [sys.executable, "-c", CLAIM_AND_WAIT, str(memory.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"claimed\n"
        assert memory.claim(["a", "b"], 2) == ["b"]
        assert [holder.pid for holder in memory.holders(["a"])] == [other.pid]
        other.kill()
        other.wait()
    assert memory.claim(["a", "b"], 2) == ["a", "b"]
    with memory.keeping(["a", "b"]):
        pass  # nothing is stored
    assert memory.holders(["a", "b"]) == []


def test_a_claim_from_elsewhere_holds_as_long_as_it_is_renewed(folder):
    memory = Memory(folder / "m.sqlite")
    elsewhere = Process.of()._replace(host="another", pid=57)
    memory.claim(["a"], 1)
    for age_s, mine in ((50, []), (70, ["a"])):
        with memory.opened() as database, database:
            row = (*elsewhere, database.now() - age_s)
            database.execute("UPDATE held SET host = ?, system = ?, pid = ?, began = ?, seen = ?", row)
        assert memory.claim(["a"], 1) == mine


def test_threads_share_work(folder):
    computed, memory = [], Memory(folder / "m.sqlite")
    work = Work("room", lambda keys: {key: computed.append(key) or key for key in keys}, str, str, 3)
    threads = [threading.Thread(target=work.do, args=(memory, [f"k{n}" for n in range(20)])) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(memory.recall([f"k{n}" for n in range(20)])) == {f"k{n}" for n in range(20)}


def test_vectors_are_remembered(folder):
    inner = HashEmbedder()
    first = RememberedEmbedder(inner, folder / "v.sqlite").embed_documents(["a", "b", "a"])
    known = RememberedEmbedder(inner, folder / "v.sqlite")
    assert np.array_equal(first, known.embed_documents(["a", "b", "a"]))
    assert sorted(filter(None, known.known_documents(["a", "c"]).values())) == ["c"]


def test_stages_are_replayed(folder):
    traces = [Trace(Question(f"q{n}", "What?")) for n in range(3)]
    stage = Shout()
    once = run_stage(stage, traces, Memory(folder / "s.sqlite"))
    again = run_stage(stage, traces, Memory(folder / "s.sqlite"))
    assert [record.remembered for trace in again for record in trace.stages] == [True] * 3
    assert len(once) == 3


def test_the_ledger_adds_up_and_keeps_limits(folder):
    ledger, caller = Ledger(folder / "ledger.sqlite"), Caller("A", "answer", "m")
    assert ledger.calls() == [] and ledger.failing() == {} and ledger.used(elsewhere=False) == Used()
    ledger.start(0.05, 3, None)
    permit = ledger.ask(caller, [0.01, 0.02, 0.01, 0.01])
    assert len(permit.numbers) == 3
    ledger.correct(permit.numbers[:2], [Made(10, 5, 0.001, 1.0), Made(20, 7, 0.002, 2.0)])
    ledger.strike(permit.numbers[2:])
    assert [(one, n, made.tokens_in) for one, n, made in ledger.calls()] == [(caller, 2, 30)]
    assert ledger.used().calls == 2 and ledger.used().cost_usd == pytest.approx(0.003)
    ledger.ask(caller, [0.0])
    assert ledger.ask(caller, [0.0]).numbers == ()
    assert "limits.calls = 3" in ledger.refused()["A"]
    for _ in range(2):
        ledger.failed("m", Failing(1, 1, "late"))
    assert ledger.failing() == {"m": Failing(2, 2, "late")}
    ledger.answered("m")
    ledger.start(None, None, None)
    assert ledger.refused() == {} and ledger.failing() == {} and ledger.out_of_time() == ""


def test_the_pace_is_shared(folder):
    paces = [RateLimitStore(folder / "paces.sqlite", lambda: 100.0) for _ in range(2)]
    assert [pace.reserve("m", 1, Rates(requests=1)) for pace in paces] == [100.0, 160.0]
    paces[0].refuse("m", 90)
    assert paces[1].open_until("m") == 190.0


@pytest.mark.slow
@needs_postgres
def test_a_server_that_is_gone_for_a_moment_is_waited_for_and_one_that_stays_away_is_a_sentence(
    server, tmp_path, monkeypatch, caplog
):
    monkeypatch.setenv(VARIABLE, server.address().replace("tester@", "tester:s3cret-word@"))
    memory = Memory(tmp_path / "m.sqlite")
    memory.store("room", {"a": "1"})
    server.stop()
    monkeypatch.setenv(WAIT_VARIABLE, "1")
    with pytest.raises(
        RagLabError, match=r"The store at 127.0.0.1:\d+/store_\d+ does not answer: .* it goes on"
    ) as told:
        memory.recall(["a"])
    assert "s3cret" not in str(told.value) + caplog.text
    monkeypatch.setenv(WAIT_VARIABLE, "60")
    found = {}
    asking = threading.Thread(target=lambda: found.update(memory.recall(["a"])))
    asking.start()
    time.sleep(1.5)
    server.start()
    asking.join()
    assert found == {"a": "1"}
    assert "waiting for it" in caplog.text


def test_a_clock_that_is_wrong_by_an_hour_changes_no_claim(folder, monkeypatch):
    memory = Memory(folder / "m.sqlite")
    memory.claim(["a"], 1)
    with memory.opened() as database, database:
        database.execute("UPDATE held SET host = 'another'")
    monkeypatch.setattr(time, "time", lambda: 3_600.0)
    assert memory.claim(["a"], 1) == []


@pytest.mark.slow
@needs_postgres
def test_a_server_whose_disk_is_full_is_a_sentence_and_not_waited_for(server, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, server.address())
    memory = Memory(tmp_path / "m.sqlite")
    memory.store("room", {"a": "1"})
    full = "DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$"
    with (
        pytest.raises(RagLabError, match="has no room: could not extend file.*it goes on"),
        memory.opened() as database,
    ):
        database.execute(full)
    assert memory.recall(["a"]) == {"a": "1"}


@pytest.mark.parametrize("address", ["mysql://here/db", "here", "sqlite:///file"])
def test_another_kind_of_database_is_a_sentence(tmp_path, monkeypatch, address):
    monkeypatch.setenv(VARIABLE, address)
    with (
        pytest.raises(ConfigError, match="write postgresql://host:5432/database with"),
        opened_store(tmp_path / "m", ""),
    ):
        pass


@pytest.mark.parametrize(
    "rest",
    [
        "u:hunter/s3cret@h/db", "u:123/s3cret@h/db", "u:hunter@s3cret@h/db", "u:s3cret%@h/db", "u:s3cret@[::1/db",
        "u:s3cret@h:99999/db", "u:s3cret@h:no/db", "u:s3cret@h:0/db", "u:s3cret@h:00/db",
        "u:s3cret@a:1,b:2,c/db?port=1,2", "u:s3cret@h/d?x=1",
    ],
)  # fmt: skip
def test_what_is_no_address_of_a_database_is_a_sentence_without_it(tmp_path, monkeypatch, rest):
    monkeypatch.setenv(VARIABLE, f"postgresql://{rest}")
    with pytest.raises(ConfigError, match="is not the address of a PostgreSQL database; write") as told:
        Memory(tmp_path / "m.sqlite").recall(["a"])
    assert "s3cret" not in str(told.value) and "hunter" not in str(told.value)


@pytest.mark.parametrize("password", ["hunter#s3cret", "hunter[s3cret", "hunter%2Fs3cret"])
def test_a_password_with_any_letter_is_not_shown(tmp_path, password):
    address = f"postgresql://u:{password}@127.0.0.1:1,[::1]:1/db"
    given = {**os.environ, VARIABLE: address, WAIT_VARIABLE: "0", "RAG_LAB_HOME": str(tmp_path)}
    command = "from rag_lab.redaction import hide_known; from rag_lab.cli import main; import urllib.parse, os\n"
    command += f"print(hide_known('it is ' + urllib.parse.unquote({password!r})))\nmain()"
    done = subprocess.run([sys.executable, "-c", command, "store", "stats"], env=given, capture_output=True, text=True)
    assert done.stdout.splitlines()[:2] == ["it is [hidden]", "Store: 127.0.0.1:1,::1:1/db"]
    assert done.returncode == 2 and done.stderr.startswith("rag-lab: The store at 127.0.0.1:1,::1:1/db does not answer")
    assert "s3cret" not in done.stdout + done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
@needs_postgres
def test_of_several_hosts_the_one_that_answers_is_taken(server, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, server.address().replace("@127", "@127.0.0.1:1,127"))
    Memory(tmp_path / "m.sqlite").store("room", {"a": "1"})
    assert Memory(tmp_path / "m.sqlite").recall(["a"]) == {"a": "1"}


@pytest.mark.slow
@needs_postgres
def test_a_server_that_was_gone_while_a_model_embedded_takes_the_vectors(server, tmp_path, monkeypatch):
    class Restarts(HashEmbedder):
        def embed_documents(self, texts):
            server.stop()
            server.start()
            return super().embed_documents(texts)

    monkeypatch.setenv(VARIABLE, server.address())
    made = RememberedEmbedder(Restarts(8), tmp_path / "v.sqlite").embed_documents(["a", "b"])
    inner = HashEmbedder(8)
    assert np.array_equal(RememberedEmbedder(inner, tmp_path / "v.sqlite").embed_documents(["a", "b"]), made)
    assert inner.documents == []


NEWER = "is a store of version 2, and this workbench reads up to version 1: install the newer workbench"


def test_a_file_of_a_newer_version_is_refused(tmp_path):
    memory = Memory(tmp_path / "stages.sqlite")
    memory.store("room", {"a": "1"})
    with sqlite3.connect(memory.path) as database:
        database.execute("PRAGMA user_version = 2")
    with pytest.raises(RagLabError, match=f"stages.sqlite {NEWER}"):
        memory.recall(["a"])


def test_a_file_from_before_versions_is_used_on(tmp_path):
    with sqlite3.connect(tmp_path / "stages.sqlite") as database:
        columns = "key TEXT PRIMARY KEY, room TEXT NOT NULL, value TEXT NOT NULL, sum BLOB NOT NULL"
        database.execute(f"CREATE TABLE remembered ({columns}) WITHOUT ROWID")
        database.execute("INSERT INTO remembered VALUES ('a', 'room', '1', ?)", [checksum("a", b"1")])
    memory = Memory(tmp_path / "stages.sqlite")
    assert memory.recall(["a"]) == {"a": "1"}
    memory.store("room", {"b": "2"})
    assert memory.recall("ab") == {"a": "1", "b": "2"}


@pytest.mark.slow
@needs_postgres
def test_a_database_of_a_newer_version_is_refused(server, tmp_path, monkeypatch):
    address = server.address()
    monkeypatch.setenv(VARIABLE, address)
    with opened_schema(address, "rag_lab_stages", "") as database, database:
        database.execute("UPDATE store_version SET version = 2")
    monkeypatch.setattr("rag_lab.memory.open_store._READY", set())
    monkeypatch.setattr("rag_lab.memory.open_store._IDLE", {})
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path))
    with pytest.raises(RagLabError, match=f"The database at 127.0.0.1:.* {NEWER}"):
        Memory(tmp_path / "stages.sqlite").recall(["a"])


SCHEMA = "CREATE TABLE IF NOT EXISTS facts (fact TEXT)"


@pytest.fixture
def folder():
    """A folder that another user can enter, unlike those of pytest."""
    found = Path(tempfile.mkdtemp())
    found.chmod(0o755)
    yield found
    shutil.rmtree(found)


def write(path, **options):
    with opened(path, SCHEMA, **options) as database, database:
        database.execute("INSERT INTO facts VALUES ('oil')")


@needs_root
def test_what_cannot_be_written_is_read_all_the_same(folder):
    write(folder / "facts.sqlite", private=False)

    def look():
        with opened(folder / "facts.sqlite", SCHEMA) as database:
            print(*database.execute("SELECT fact FROM facts").fetchone())
        with pytest.raises(RagLabError, match="readonly database; see that its folder can be written"):
            write(folder / "facts.sqlite")

    assert as_nobody(look) == "oil\n"
    assert [path.name for path in folder.iterdir()] == ["facts.sqlite"]


def test_what_is_remembered_is_for_its_owner_alone(folder):
    with opened(folder / "new" / "facts.sqlite", SCHEMA) as database, database:
        database.execute("INSERT INTO facts VALUES ('oil')")
        made = list((folder / "new").iterdir())
        assert len(made) > 1 and not any(path.stat().st_mode & 0o077 for path in [folder / "new", *made])
