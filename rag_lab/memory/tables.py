"""The tables of what is remembered, one set for each file of the home folder, and rows with a checksum.

Columns: `key`, `value` and the checksum `sum` of both; `made`, seconds since 1970 by the store's clock, 0 where that
was not noted yet; `run`, the name of the folder of the run that made it, '' by hand. What was damaged is deleted
where it is met, so that each is counted once, by whichever process met it, and computed again; each process says at its
end how many that were.
"""

import atexit
import hashlib
import logging
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

from rag_lab._kit.home import home
from rag_lab._kit.process import in_kernel
from rag_lab._kit.wording import counted
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
_LOGGER = logging.getLogger(__name__)
_KEYS_AT_ONCE = 500  # below SQLite's limit of variables
Key = TypeVar("Key", str, bytes)


def origin(database: Database) -> tuple[float, str]:
    """Return when, and for which run, an entry is made that this process stores now."""
    return database.now(), Path(os.environ.get(LEDGER_VARIABLE, "")).parent.name


def opened_memory(name: str) -> AbstractContextManager[Database]:
    """Open one of `MEMORIES` for one block."""
    return opened_store(home() / f"{name}.sqlite", MEMORIES[name])


def memories() -> list[str]:
    """Return the names of those that there are."""
    return [name for name in MEMORIES if is_there(home() / f"{name}.sqlite")]


class Dropped:
    """How many damaged results this process knows of."""

    n = 0


def checksum(key: str | bytes, value: bytes) -> bytes:
    """Return the eight bytes that `key` and `value` are stored with."""
    name = key.encode() if isinstance(key, str) else key
    return hashlib.blake2b(len(name).to_bytes(4, "big") + name + value, digest_size=8).digest()


def content(value: str | bytes | None) -> bytes:
    """Return what a column holds as bytes; none where damage left nothing."""
    return value.encode() if isinstance(value, str) else value or b""


def recall(database: Database, table: str, keys: Sequence[Key]) -> dict[Key, bytes]:
    """Return the values of those of `keys` that `table` holds unharmed; what is damaged is deleted from it."""
    found: dict[Key, bytes] = {}
    damaged: list[tuple[Key, bytes]] = []
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        some = keys[start : start + _KEYS_AT_ONCE]
        # Read as bytes: text that is no longer UTF-8 would be an error of the whole query.
        columns = f"key, {database.as_bytes.format('value')}, {database.as_bytes.format('sum')}"
        query = f"SELECT {columns} FROM {table} WHERE key IN ({','.join('?' * len(some))})"  # noqa: S608 - our names
        for key, value, kept in database.execute(query, some):
            whole = content(value)
            if kept == checksum(key, whole):
                found[key] = whole
            else:
                damaged.append((key, kept))
    if damaged:
        statement = f"DELETE FROM {table} WHERE key = ? AND {database.as_bytes.format('sum')} = ?"  # noqa: S608 - our names
        with database:
            tell_dropped(sum(database.execute(statement, row).rowcount for row in damaged))
    return found


def tell_dropped(n: int) -> None:
    """Say at the end of this process, or at once below a notebook's cell, that `n` more results were damaged."""
    first = Dropped.n == 0
    Dropped.n += n
    if n and in_kernel():
        _LOGGER.warning(_sentence(n))
    elif n and first:
        atexit.register(lambda: _LOGGER.warning(_sentence(Dropped.n)))


def _sentence(n: int) -> str:
    return f"{counted(n, 'stored result')} {'was' if n == 1 else 'were'} damaged and had to be computed again."
