"""The tables of what is remembered, one set for each file of the home folder, and where an entry comes from.

Columns: `key`, `value` and the checksum `sum` of both; `made`, seconds since 1970 by the store's clock, 0 where that
was not noted yet; `run`, the name of the folder of the run that made it, '' by hand.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path

from rag_lab._kit.home import home
from rag_lab.memory.ledger import LEDGER_VARIABLE
from rag_lab.memory.open_store import Database, is_there, opened_store

RESULTS = """
PRAGMA synchronous=NORMAL;
CREATE TABLE IF NOT EXISTS remembered (
    key TEXT PRIMARY KEY, room TEXT NOT NULL, value TEXT NOT NULL, sum BLOB NOT NULL,
    made REAL NOT NULL DEFAULT 0, run TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS held (
    key TEXT PRIMARY KEY, host TEXT NOT NULL, system TEXT NOT NULL, pid INTEGER NOT NULL, began TEXT NOT NULL,
    seen REAL NOT NULL) WITHOUT ROWID;
"""
VECTORS = """
CREATE TABLE IF NOT EXISTS remembered (
    key BLOB PRIMARY KEY, value BLOB NOT NULL, sum BLOB NOT NULL,
    made REAL NOT NULL DEFAULT 0, run TEXT NOT NULL DEFAULT '') WITHOUT ROWID
"""
MEMORIES = {"files": RESULTS, "scores": RESULTS, "stages": RESULTS, "vectors": VECTORS, "vision": RESULTS}


def origin(database: Database) -> tuple[float, str]:
    """Return when, and for which run, an entry is made that this process stores now."""
    return database.now(), Path(os.environ.get(LEDGER_VARIABLE, "")).parent.name


def opened_memory(name: str) -> AbstractContextManager[Database]:
    """Open one of `MEMORIES` for one block."""
    return opened_store(home() / f"{name}.sqlite", MEMORIES[name])


def memories() -> list[str]:
    """Return the names of those that there are."""
    return [name for name in MEMORIES if is_there(home() / f"{name}.sqlite")]
