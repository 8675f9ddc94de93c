"""A persistent map from keys to JSON texts, shared by processes: what one has computed, none computes again.

A process claims keys before it computes them, so that two variants running side by side split shared work between
them instead of doing it twice. The claims of a process that has died are void, which is how a killed sweep resumes.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS results (key TEXT PRIMARY KEY, room TEXT NOT NULL, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL) WITHOUT ROWID;
"""
_WAIT_S = 0.2


class Memory:
    """The map. Each call opens its own connection, so instances are cheap and safe to share between threads."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def recall(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the values of those of `keys` that are known."""
        if not self.path.exists():
            return {}
        with closing(self._connect()) as database:
            return {
                key: value
                for some in batches(keys, 500)
                for key, value in database.execute(
                    f"SELECT key, value FROM results WHERE key IN ({_marks(some)})",  # noqa: S608 - question marks only
                    some,
                )
            }

    def store(self, room: str, values: Mapping[str, str]) -> None:
        """Remember `values` under `room` (a label for listings) and give up this process's claims on them."""
        with closing(self._connect()) as database, database:
            rows = [(key, room, value) for key, value in values.items()]
            database.executemany("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", rows)
            database.executemany("DELETE FROM claims WHERE key = ?", [(key,) for key in values])

    def claim(self, keys: Sequence[str], limit: int) -> list[str]:
        """Claim up to `limit` of `keys` that nobody has stored or is computing; return those now this process's own."""
        me = (socket.gethostname(), os.getpid())
        with closing(self._connect()) as database, database:
            database.execute("BEGIN IMMEDIATE")
            mine = list(islice((key for key in keys if _is_free(database, key, me)), limit))
            database.executemany("INSERT OR REPLACE INTO claims VALUES (?, ?, ?)", [(key, *me) for key in mine])
        return mine

    def release(self, keys: Iterable[str]) -> None:
        """Give up claims without storing a value."""
        with closing(self._connect()) as database, database:
            database.executemany("DELETE FROM claims WHERE key = ?", [(key,) for key in keys])

    def wait(self) -> None:
        """Wait a moment for another process that holds all the keys one is after."""
        time.sleep(_WAIT_S)

    @contextmanager
    def held_open(self) -> Iterator[None]:
        """Hold a connection in this block, or each call in it writes the whole log back when it closes the last one."""
        with closing(self._connect()):
            yield

    def counts(self) -> dict[str, int]:
        """Return how many results each room has."""
        if not self.path.exists():
            return {}
        with closing(self._connect()) as database:
            return dict(database.execute("SELECT room, count(*) FROM results GROUP BY room ORDER BY room"))

    def _connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(self.path, timeout=60)
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        database.executescript(_SCHEMA)
        return database


def batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield consecutive lists of `size` items, the last one maybe shorter."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def _marks(keys: Sequence[str]) -> str:
    return ",".join("?" * len(keys))


def _is_free(database: sqlite3.Connection, key: str, me: tuple[str, int]) -> bool:
    if database.execute("SELECT 1 FROM results WHERE key = ?", (key,)).fetchone():
        return False
    owner = database.execute("SELECT host, pid FROM claims WHERE key = ?", (key,)).fetchone()
    return owner is None or owner == me or not is_alive(*owner)


def is_alive(host: str, pid: int) -> bool:
    """Tell whether a process still runs; one on another host counts as running."""
    if host != socket.gethostname():
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """Whether the process has ended and only waits for its parent to notice (as `/proc` tells, where there is one)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state == "Z"
