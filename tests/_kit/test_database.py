"""A file of the workbench can be read where it cannot be written, and is its owner's alone."""

import shutil
import tempfile
from pathlib import Path

import pytest
from other_user import as_nobody, needs_root

from rag_lab.errors import RagLabError
from rag_lab.memory.open_store import opened

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
