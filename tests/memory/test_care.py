"""What is remembered, in files and in a database: sums, damage, what may go, and a store as a file."""

import gzip
import json
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab._kit.home import home
from rag_lab.errors import RagLabError
from rag_lab.memory.care import Checked, Choice, _take, export_store, holdings, import_store, prune, verify
from rag_lab.memory.ledger import LEDGER_VARIABLE
from rag_lab.memory.results import Memory, opened_memory
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


VALUES = {f"k{n}": json.dumps({"text": f"{n} ä\u2028\0 % ?"}) for n in range(1500)}


@pytest.fixture
def exported(tmp_path, monkeypatch):
    """A file with 1,500 results and two vectors, from files of another home."""
    with monkeypatch.context() as context:
        context.delenv("RAG_LAB_STORE", raising=False)
        context.setenv("RAG_LAB_HOME", str(tmp_path / "from"))
        Memory(home() / "stages.sqlite").store("room", VALUES)
        embedder().embed_documents(["oil", "ram"])
        assert export_store(tmp_path / "store.jsonl.gz") == (1502, 0)
        held = holdings()
    return tmp_path / "store.jsonl.gz", held


def lines_of(path):
    return gzip.decompress(path.read_bytes()).splitlines(keepends=True)


def test_what_was_exported_comes_back(folder, exported):
    path, held = exported
    assert import_store(path) == Checked(1502)
    assert holdings() == held
    assert verify().damaged == []
    assert Memory(home() / "stages.sqlite").recall(VALUES) == VALUES
    inner = HashEmbedder(8)
    again = RememberedEmbedder(inner, home() / "vectors.sqlite").embed_documents(["oil", "ram"])
    assert np.array_equal(again, HashEmbedder(8).embed_documents(["oil", "ram"]))
    assert inner.documents == []


def test_what_is_there_stays_and_damage_is_not_exported(folder, exported, tmp_path):
    memory = Memory(home() / "stages.sqlite")
    memory.store("room", {"k0": '"mine"'})
    import_store(exported[0])
    assert memory.recall(["k0", "k1"]) == {"k0": '"mine"', "k1": VALUES["k1"]}
    with opened_memory("stages") as database, database:
        database.execute("UPDATE remembered SET value = '1' WHERE key = 'k7'")
    assert export_store(tmp_path / "again.jsonl.gz") == (1501, 1)


def test_damaged_lines_are_refused_one_by_one(folder, exported):
    path, _ = exported
    lines = lines_of(path)
    whole = json.loads(lines[1])
    wrong = [
        {"value": '"other"'}, {"value": "\0"}, {"key": 7}, {"key": "a\0"}, {"memory": "../x"}, {"memory": ["stages"]},
        {"made": "nan"}, {"run": None}, {"sum": "zz"}, {"room": "\ud800"}, {"memory": "vectors"},
    ]  # fmt: skip
    bad = [json.dumps(whole | change).encode() + b"\n" for change in wrong]
    bad += [b"\n", b"[]\n", b"\xff\n", b"[" * 100_000 + b"\n", b"null\n"]
    path.write_bytes(gzip.compress(b"".join([lines[0], *bad, *lines[1:]])))
    taken = import_store(path)
    assert taken == Checked(1502, refused=[*range(2, 2 + len(bad))])
    assert verify().damaged == []


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"hello", "cannot be read as an exported store"),
        (gzip.compress(b""), "is no exported store"),
        (gzip.compress(b'{"rag_lab_store": true}\n'), "is no exported store"),
        (gzip.compress(b'{"rag_lab_store": 2}\n'), "is a store of version 2, and this workbench reads up to version 1"),
    ],
    ids=["plain", "empty", "no version", "newer"],
)
def test_a_file_that_is_none_is_one_sentence(tmp_path, content, told):
    (tmp_path / "x.gz").write_bytes(content)
    with pytest.raises(RagLabError, match=told):
        import_store(tmp_path / "x.gz")


def test_a_file_that_was_cut_gives_what_it_has(tmp_path, exported):
    path, _ = exported
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(RagLabError, match=r"cannot be read as an exported store \(.*\); 1,000 entries before that"):
        import_store(path)
    assert verify().entries == 1000


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(RagLabError, match="Cannot write .*x.gz: No such file"):
        export_store(tmp_path / "absent" / "x.gz")


@given(line=st.recursive(st.none() | st.integers() | st.text() | st.floats(), lambda inner: st.lists(inner)))
def test_no_line_of_another_shape_is_taken(line):
    taken = Checked()
    _take([(1, json.dumps(line).encode()), (2, json.dumps({"memory": line}).encode())], taken)
    assert taken == Checked(refused=[1, 2])
