"""`rag-lab store`, typed as people type it."""

import sqlite3

import pytest
from typer.testing import CliRunner

from rag_lab._kit.home import home
from rag_lab.cli import app
from rag_lab.errors import ConfigError
from rag_lab.memory.results import Memory


def typed(*words, status=0):
    done = CliRunner().invoke(app, ["store", *words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == status, done.output
    return done.output


@pytest.fixture
def memory():
    memory = Memory(home() / "stages.sqlite")
    memory.store("room", {"a": "1", "b": '"' + "b" * 2000 + '"'})
    return memory


def test_an_empty_store_says_so():
    assert "0 entries, 0.0 MB in all." in typed("stats")
    assert typed("verify") == "0 entries checked: all whole.\n"


def test_stats_say_where_it_is_and_what_it_holds(memory):
    told = typed("stats")
    assert told.startswith(f"Store: {home()}\n")
    assert "stages  by hand        2" in told
    assert told.endswith("2 entries, 0.0 MB in all.\n")


def test_damage_is_named_and_ends_with_status_1_until_it_is_deleted(memory):
    with sqlite3.connect(memory.path) as database:
        database.execute("UPDATE remembered SET value = '2' WHERE key = 'a'")
    assert "damaged: stages a\n2 entries checked: 1 damaged.\n" in typed("verify", status=1)
    assert "2 entries checked: 1 damaged and deleted.\n" in typed("verify", "--drop")
    assert typed("verify") == "1 entry checked: all whole.\n"


def test_what_would_go_is_shown_and_goes_only_with_yes(memory):
    assert "1 entry, 0.0 MB in all.\nNothing was deleted; --yes" in typed("prune", "--larger-than", "1kB")
    assert set(memory.recall("ab")) == {"a", "b"}
    assert typed("prune", "--larger-than", "1kB", "--yes") == "1 entry deleted.\n"
    assert typed("prune", "--older-than", "30d", "--yes") == "0 entries deleted.\n"
    assert set(memory.recall("ab")) == {"a"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "Nothing says what may go: give --older-than, --experiment or --larger-than"),
        (("--older-than", "30"), r"--older-than is a number with a unit \(m, h, d, w\), not '30': give 30d or 12h"),
        (("--larger-than", "-1kB"), r"--larger-than is a number with a unit \(kB, MB, GB\), not '-1kB'"),
    ],
)
def test_what_may_go_must_be_said(memory, words, told):
    with pytest.raises(ConfigError, match=told):
        typed("prune", "--yes", *words)


def test_a_store_is_carried_to_another_home(memory, tmp_path, monkeypatch):
    file = tmp_path / "store.jsonl.gz"
    assert typed("export", str(file)) == f"2 entries written to {file}.\n"
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "other"))
    assert typed("import", str(file)) == f"2 entries taken from {file}.\n"
    assert set(Memory(home() / "stages.sqlite").recall("ab")) == {"a", "b"}
