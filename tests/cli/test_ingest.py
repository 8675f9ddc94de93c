"""`rag-lab ingest` on a real database: counts, a dry run, status, and what it leaves behind to be asked."""

import os
import re
import shlex
import signal
import sqlite3
from pathlib import Path

from rag_lab.corpus.folder import list_files
from rag_lab.sources.ingestion import Ingestion

NOTES = """
dataset: mine
connectors:
- name: notes
  kind: folder
  options: {path: %s}
"""
CONNECTORS = f"""{NOTES}
- name: notices
  kind: sql
  options: {{url: "sqlite:///%s", query: select * from notices, key: id, version_column: revision}}
  template: "# {{{{ title }}}}\\n\\n{{{{ text }}}}"
"""


def test_sources_become_a_corpus_that_follows_them(rag_lab, tmp_path):
    database = sqlite3.connect(tmp_path / "plant.db", isolation_level=None)
    database.execute("CREATE TABLE notices (id TEXT, revision INTEGER, title TEXT, text TEXT)")
    database.executemany(
        "INSERT INTO notices VALUES (?, 1, ?, 'The valve opens at 290 bar.')", [("CN-1", "A"), ("CN-2", "")]
    )
    (tmp_path / "connectors.yaml").write_text(CONNECTORS % (tmp_path / "notes", tmp_path / "plant.db"))
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
    by_words = ["--dataset", tmp_path / "mine", "--set", "retrieval.mode=bm25", "--set", "answer.name=none"]
    status, out, err = rag_lab("ask", "At how many bar does it open?", *by_words)
    assert status == 0 and "[1] notices/cn-1" in out and "notices: 1 document, as of 20" in err
    assert "as of" not in rag_lab("ask", "At how many bar does it open?", "--may-see", "notices", *by_words)[2]
    labels = list_files(tmp_path / "mine/corpus").attributes
    assert {(label.namespace, label.permissions) for label in labels.values()} == {
        ("notices", ("notices",)),
        ("notes", ("notes",)),
    }
    assert rag_lab("ingest", tmp_path / "none.yaml")[0] == 2


def test_ctrl_c_ends_after_the_batch(rag_lab, tmp_path, monkeypatch):
    (tmp_path / "notes").mkdir()
    for n in range(6):
        (tmp_path / f"notes/{n}.md").write_text(f"Note {n}.")
    (tmp_path / "connectors.yaml").write_text(NOTES % (tmp_path / "notes"))
    put = Ingestion._put

    def put_and_ask_to_end(*arguments):
        if not list((tmp_path / "mine/corpus").rglob("*.md")):
            os.kill(os.getpid(), signal.SIGINT)
        return put(*arguments)

    monkeypatch.setattr(Ingestion, "_put", put_and_ask_to_end)
    monkeypatch.setattr("rag_lab.sources.ingestion._AT_ONCE", 2)
    status, out, _ = rag_lab("ingest", tmp_path / "connectors.yaml", "--follow")
    assert status == 0 and "notes: 2 new" in out and "not all was looked at" in out
    assert len(list((tmp_path / "mine/corpus/notes").iterdir())) == 2
    assert rag_lab("ingest", tmp_path / "connectors.yaml")[1].startswith("notes: 4 new, 0 changed, 0 gone, 2 as before")


def test_the_demo_of_the_page_runs(rag_lab, tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs/sources.md").read_text().partition("## A demo")[2]
    monkeypatch.chdir(tmp_path)
    exec(re.search("```python\n(.*?)```", page, re.S)[1], {})
    (tmp_path / "connectors.yaml").write_text(re.search("```yaml\n(.*?)```", page, re.S)[1])
    revise = re.search("<<'END'\n(.*?)\nEND\n", page, re.S)[1]
    ask = shlex.split(re.search("^rag-lab (ask .*)$", page, re.M)[1])
    by_words = ["--set", "retrieval.mode=bm25", "--set", "answer.name=none"]  # which need no model
    assert "3 new" in rag_lab("ingest", "connectors.yaml")[1]
    exec(revise, {})
    assert "1 changed" in rag_lab("ingest", "connectors.yaml")[1]
    after = rag_lab(*ask, *by_words)[1]
    (file,) = Path("notices/corpus/change_notices").glob("cn-2231-*")
    assert "26,000 shots" in file.read_text() and f"[1] change_notices/{file.name}" in after
