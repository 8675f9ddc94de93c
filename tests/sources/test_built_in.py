"""The sources that ship, on a real folder and real databases."""

import threading
from queue import SimpleQueue

import pytest
import sqlalchemy
from changing_source import look, texts
from postgres import needs_postgres, postgres_server

from rag_lab.sources.follow import _watch
from rag_lab.sources.listings import FolderSource, SqlSource


def test_a_folder_is_followed_file_by_file(tmp_path):
    here, there = tmp_path / "mine", tmp_path / "there"
    (there / "a").mkdir(parents=True)
    (there / "a/x.md").write_text("one")
    (there / "a/x.txt").write_text("two")
    (there / "odd.documents").write_text('"../other"\n')
    found = look(here, FolderSource(there))
    assert texts(here) == ["one", "two"] and "suffix is '.documents'" in found.problems["odd.documents"]
    heard, stop = SimpleQueue(), threading.Event()
    thread = threading.Thread(target=_watch, args=(FolderSource(there), heard.put, stop))
    thread.start()
    try:
        for n in range(100):
            (there / "a/x.txt").write_text(f"three {n}")
            if not heard.empty():
                break
            stop.wait(0.1)
    finally:
        stop.set()
        thread.join()
    assert heard.get(timeout=1) == ("a/x.txt",)
    (there / "a/.x.txt").write_text("hidden")
    assert [entry.key for entry in FolderSource(there).entries("", ["a/x.txt", "a", "a/.x.txt", "b"])] == ["a/x.txt"]
    (there / "a/x.md").unlink()
    found = look(here, FolderSource(there))
    assert (found.changed, found.gone) == (1, 1) and len(texts(here)) == 1
    assert "there is no folder" in look(here, FolderSource(tmp_path / "gone")).failure and len(texts(here)) == 1


@pytest.fixture
def notices(tmp_path):
    engine = sqlalchemy.create_engine(address := f"sqlite:///{tmp_path / 'notices.db'}")
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE notices (id INTEGER, rev INTEGER, text TEXT)"))
        connection.execute(sqlalchemy.text("INSERT INTO notices VALUES (1, 1, 'one'), (2, 1, 'two'), (NULL, 1, 'x')"))

    def change(statement):
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text(statement))

    return address, change


@pytest.mark.parametrize("version", ["rev", ""])
def test_rows_of_a_query_are_documents(tmp_path, notices, version):
    address, change = notices
    source = SqlSource(address, "SELECT * FROM notices", "id", version)
    found = look(tmp_path / "d", source, template="{{ id }}: {{ text }}")
    assert texts(tmp_path / "d") == ["1: one", "2: two"] and "no key" in found.problems["None"]
    assert [entry.key for entry in source.entries("", {"2", "no number"})] == ["2"]
    change("UPDATE notices SET text = 'newer', rev = 0 WHERE id = 1")  # as by a clock that went back
    change("DELETE FROM notices WHERE id = 2")
    found = look(tmp_path / "d", source, template="{{ id }}: {{ text }}")
    assert (found.new, found.changed, found.gone) == (0, 1, 1) and texts(tmp_path / "d") == ["1: newer"]
    change("ALTER TABLE notices RENAME COLUMN id TO number")
    found = look(tmp_path / "d", source, template="{{ id }}: {{ text }}")
    assert ("no such column" if version else "column 'id'") in found.failure
    assert not found.whole and texts(tmp_path / "d") == ["1: newer"]


@needs_postgres
@pytest.mark.slow
def test_a_notice_of_postgresql_is_an_event_and_a_server_that_is_down_deletes_nothing(tmp_path):
    with postgres_server() as server:
        address = server.address()
        engine = sqlalchemy.create_engine(address.replace("postgresql:", "postgresql+psycopg:"))
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text("CREATE TABLE t (id int, at timestamptz default now(), text text)"))
            connection.execute(sqlalchemy.text("INSERT INTO t (id, text) VALUES (1, 'one')"))
        source = SqlSource(str(engine.url), "SELECT * FROM t;", "id", "at", notify="rows")
        look(tmp_path, source)
        heard, stop = SimpleQueue(), threading.Event()
        thread = threading.Thread(target=_watch, args=(source, heard.put, stop))
        thread.start()
        try:
            assert heard.get(timeout=20) == ()
            with engine.begin() as connection:
                connection.execute(sqlalchemy.text("UPDATE t SET text = 'two', at = now() + interval '1 s'"))
                connection.execute(sqlalchemy.text("NOTIFY rows, '1'"))
            assert heard.get(timeout=20) == ("1",) and [entry.key for entry in source.entries("", ["1", "x"])] == ["1"]
        finally:
            stop.set()
            thread.join()
        assert look(tmp_path, source).changed == 1
        server.stop()
        found = look(tmp_path, source)
        assert "OperationalError" in found.failure and len(texts(tmp_path)) == 1
        server.start()
        assert look(tmp_path, source).same == 1
