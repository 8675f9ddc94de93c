"""A store of either kind for a test: files in its folder, or a database of its own in a real PostgreSQL server."""

import pytest
from postgres import needs_postgres, postgres_server

from rag_lab.memory import results
from rag_lab.memory.open_store import VARIABLE
from rag_lab.memory.results import Dropped


@pytest.fixture(autouse=True)
def _none_dropped_yet(monkeypatch):
    monkeypatch.setattr(Dropped, "n", 0)
    monkeypatch.setattr(results.atexit, "register", lambda function: None)


@pytest.fixture(scope="session")
def server():
    with postgres_server() as running:
        yield running


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=[pytest.mark.slow, needs_postgres])])
def folder(request, tmp_path, monkeypatch):
    """A folder for files, which a database may stand for."""
    if request.param == "postgres":
        monkeypatch.setenv(VARIABLE, request.getfixturevalue("server").address())
    return tmp_path
