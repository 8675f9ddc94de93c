"""Opening the workbench's SQLite files: one that is damaged, or cannot be written, is a sentence."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from rag_lab._kit.home import PRIVATE
from rag_lab.errors import DamagedFile, RagLabError

REMEMBERED = "delete it with its -wal and -shm files, and what it remembered is computed again"
_UNUSABLE = {  # codes that say nothing about the content of a file
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}


@contextmanager
def opened(
    path: Path,
    schema: str,
    remedy: str = REMEMBERED,
    factory: type[sqlite3.Connection] = sqlite3.Connection,
    *,
    private: bool = True,
) -> Iterator[sqlite3.Connection]:
    """Open or create the file at `path` for one block; changes are kept by `with` on what is yielded.

    A file that cannot be written, or whose folder cannot, as on a read-only medium, can be read all the same.
    Raises a `RagLabError` if it is damaged (`remedy` says what to do then), or is locked for a minute.

    Args:
        schema: statements that create what is not there yet.
        private: whether a new file and its folder are for this user alone: it holds what was read.
    """
    try:
        path.parent.mkdir(PRIVATE if private else 0o777, parents=True, exist_ok=True)
        if private and not path.exists():
            os.close(os.open(path, os.O_CREAT, PRIVATE & 0o666))  # SQLite's log takes over the mode
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from None
    address, reads_only = str(path), False
    if path.exists() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        # SQLite would create the files of a lock, which it cannot here; without a log nothing changes, nor is locked.
        log, reads_only = path.with_name(f"{path.name}-wal"), True
        has_log = log.exists() and log.stat().st_size > 0
        address = f"{path.resolve().as_uri()}?mode=ro{'' if has_log else '&immutable=1'}"
    try:
        with closing(sqlite3.connect(address, timeout=60, factory=factory, uri=reads_only)) as database:
            if database.execute("SELECT 1 FROM sqlite_schema WHERE type IN ('view', 'trigger')").fetchone():
                raise DamagedFile(path, "it would run statements that the workbench never wrote", remedy)
            if not reads_only:
                _keep_log(database)
                database.executescript(schema)
            yield database
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _UNUSABLE:
            raise _unusable(path, str(error)) from error
        raise DamagedFile(path, str(error), remedy) from error


def _keep_log(database: sqlite3.Connection) -> None:
    """Let readers and a writer not wait for each other; where several open a new file at once, all but one try again.

    For this statement alone SQLite does not wait by itself.
    """
    for wait_s in (0.01, 0.05, 0.2, 1.0, 5.0):
        try:
            database.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            time.sleep(wait_s)
        else:
            return
    database.execute("PRAGMA journal_mode=WAL")


def _unusable(path: Path, reason: str) -> RagLabError:
    return RagLabError(
        f"{path} cannot be used: {reason}; see that its folder can be written and its disk has room "
        "(RAG_LAB_HOME names the folder of what is remembered)."
    )
