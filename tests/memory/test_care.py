"""Looking over what is remembered, in files and in a database: sums, damage, what may go."""

import time

import numpy as np
import pytest

from rag_lab._kit.home import home
from rag_lab.memory.care import Choice, holdings, prune, verify
from rag_lab.memory.ledger import LEDGER_VARIABLE
from rag_lab.memory.results import Memory
from rag_lab.memory.tables import opened_memory
from rag_lab.models.remembered_vectors import RememberedEmbedder
from rag_lab.testing import HashEmbedder


@pytest.fixture
def stages(folder, monkeypatch):
    """Three results, two of them made for the run `one`, and two vectors made by hand."""
    memory = Memory(home() / "stages.sqlite")
    memory.store("room", {"a": '"ä"'})
    monkeypatch.setenv(LEDGER_VARIABLE, "/somewhere/one/ledger.sqlite")
    memory.store("room", {"b": '"b"', "c": '"' + "c" * 998 + '"'})
    monkeypatch.delenv(LEDGER_VARIABLE)
    embedder().embed_documents(["oil", "ram"])
    return memory


def embedder():
    return RememberedEmbedder(HashEmbedder(8), home() / "vectors.sqlite")


def change(name, statement, *values):
    with opened_memory(name) as database, database:
        database.execute(statement, values)


def test_nothing_is_held_where_nothing_was_stored(folder):
    assert holdings() == []
    assert verify().entries == 0
    assert prune(Choice(run="one")) == 0


def test_holdings_are_summed_by_memory_and_run(stages):
    found = holdings()
    assert [(one.memory, one.run, one.entries, one.n_bytes) for one in found] == [
        ("stages", "", 1, 4), ("stages", "one", 2, 1003), ("vectors", "", 2, 2 * (8 + 8 * 4)),
    ]  # fmt: skip
    assert all(abs(one.oldest_s - time.time()) < 600 for one in found)


def test_damage_is_named_and_deleted_where_that_is_asked(stages):
    assert (verify().entries, verify().damaged) == (5, [])
    change("stages", "UPDATE remembered SET value = ? WHERE key = ?", '"x"', "b")
    change("vectors", "UPDATE remembered SET value = ?", b"short")
    damaged = verify(drop=True).damaged
    assert damaged[0] == ("stages", "b")
    assert [name for name, _ in damaged] == ["stages", "vectors", "vectors"]
    assert (verify().entries, verify().damaged) == (2, [])
    assert stages.claim(["a", "b"], 2) == ["b"]
    assert np.isfinite(embedder().embed_documents(["oil"])).all()


def test_all_of_many_entries_are_looked_at(folder):
    Memory(home() / "scores.sqlite").store("room", {f"k{n}": str(n) for n in range(2500)})
    assert verify().entries == 2500


@pytest.mark.parametrize(
    ("choice", "left"),
    [
        (Choice(run="one"), "a"),
        (Choice(larger_than_bytes=900), "ab"),
        (Choice(older_than_s=3600), "bc"),
        (Choice(older_than_s=-3600, run="one", larger_than_bytes=900), "ab"),
        (Choice(run="another"), "abc"),
    ],
)
def test_what_is_chosen_goes_and_all_else_stays(stages, choice, left):
    change("stages", "UPDATE remembered SET made = made - 7200 WHERE key = ?", "a")
    meant = sum(one.entries for one in holdings(choice))
    assert prune(choice) == meant == 3 - len(left)
    assert set(stages.recall("abc")) == set(left)
    assert verify().entries == len(left) + 2
