"""Stores of a newer version are refused; files from before versions were written are used on."""

import sqlite3

import pytest
from postgres import needs_postgres

from rag_lab.errors import RagLabError
from rag_lab.memory.open_store import VARIABLE
from rag_lab.memory.postgres import opened_schema
from rag_lab.memory.results import Memory
from rag_lab.memory.tables import checksum

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
    monkeypatch.setattr("rag_lab.memory.postgres._READY", set())
    monkeypatch.setattr("rag_lab.memory.postgres._IDLE", {})
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path))
    with pytest.raises(RagLabError, match=f"The database at 127.0.0.1:.* {NEWER}"):
        Memory(tmp_path / "stages.sqlite").recall(["a"])
