"""`rag-lab ingest` on a real database: counts, a dry run, status, and what it leaves behind to be asked."""

import sqlite3

from rag_lab.corpus.folder import list_files

CONNECTORS = """
dataset: mine
connectors:
- name: notices
  kind: sql
  options: {url: "sqlite:///%s", query: select * from notices, key: id, version_column: revision}
  template: "# {{ title }}\\n\\n{{ text }}"
- name: notes
  kind: folder
  options: {path: %s}
"""


def test_sources_become_a_corpus_that_follows_them(rag_lab, tmp_path):
    database = sqlite3.connect(tmp_path / "plant.db", isolation_level=None)
    database.execute("CREATE TABLE notices (id TEXT, revision INTEGER, title TEXT, text TEXT)")
    database.executemany(
        "INSERT INTO notices VALUES (?, 1, ?, 'The valve opens at 290 bar.')", [("CN-1", "A"), ("CN-2", "")]
    )
    (tmp_path / "connectors.yaml").write_text(CONNECTORS % (tmp_path / "plant.db", tmp_path / "notes"))
    status, out, err = rag_lab("ingest", tmp_path / "connectors.yaml", "--dry-run")
    assert status == 1 and "notices: 2 new, 0 changed, 0 gone, 0 as before" in out and "Down: notes" in err
    assert not (tmp_path / "mine").exists()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/shift.md").write_text("Night shift.")
    status, out, err = rag_lab("ingest", tmp_path / "connectors.yaml")
    assert status == 0 and "notes: 1 new" in out and "rag-lab ask" in err
    database.execute("UPDATE notices SET revision = 2, text = 'It opens at 270 bar.' WHERE id = 'CN-1'")
    database.execute("DELETE FROM notices WHERE id = 'CN-2'")
    status, out, _ = rag_lab("ingest", tmp_path / "connectors.yaml")
    assert status == 0 and "notices: 0 new, 1 changed, 1 gone, 0 as before" in out
    (text,) = [path.read_text() for path in (tmp_path / "mine/corpus/notices").iterdir()]
    assert text == "# A\n\nIt opens at 270 bar."
    status, out, _ = rag_lab("ingest", tmp_path / "connectors.yaml", "--status")
    assert status == 0 and out.count("1 document, as of 20") == 2
    by_words = ["--dataset", tmp_path / "mine", "--set", "retrieval.mode=bm25", "--set", "answer.name=extract"]
    status, out, err = rag_lab("ask", "At how many bar does it open?", *by_words)
    assert status == 0 and "270 bar" in out and "notices: 1 document, as of 20" in err
    assert "as of" not in rag_lab("ask", "At how many bar does it open?", "--may-see", "notices", *by_words)[2]
    labels = list_files(tmp_path / "mine/corpus").attributes
    assert {(label.namespace, label.permissions) for label in labels.values()} == {
        ("notices", ("notices",)),
        ("notes", ("notes",)),
    }
    assert rag_lab("ingest", tmp_path / "none.yaml")[0] == 2
