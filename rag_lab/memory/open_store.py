"""Where results are remembered: SQLite files in the home folder, or one PostgreSQL database for many machines.

The environment decides: RAG_LAB_STORE=postgresql://user@host/database. Each file has a schema of its own there.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, cast

from rag_lab._kit.database import REMEMBERED, opened
from rag_lab._kit.home import home
from rag_lab.errors import ConfigError
from rag_lab.memory.postgres import NO_ADDRESS, VERSION, opened_schema, refuse_newer

VARIABLE = "RAG_LAB_STORE"
_SCHEMES = ("postgresql://", "postgres://")


class Database(Protocol):
    """A connection. Statements have `?` for values; as a block it is a transaction."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Any:
        """Execute a statement and return its cursor."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> Any:
        """Execute a statement for each row."""

    def lock(self) -> None:
        """Be alone until the transaction ends."""

    def now(self) -> float:
        """Return seconds since 1970 by the clock that all who share the store go by."""

    @staticmethod
    def as_bytes(column: str) -> str:
        """Return what selects a column so that damage in it is no error."""

    @staticmethod
    def size_of(column: str) -> str:
        """Return what selects the bytes of a column."""

    def __enter__(self) -> Any: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None, /
    ) -> Any: ...


class SqliteDatabase(sqlite3.Connection):
    """A file, as a `Database`."""

    def __init__(self, path: str, *given: Any, **more: Any) -> None:
        super().__init__(path, *given, **more)
        self._path = Path(path)
        self.reads_only = bool(more.get("uri"))  # by an address a file is opened that cannot be written

    def lock(self) -> None:
        """Be alone until the transaction ends."""
        self.execute("BEGIN IMMEDIATE")

    def now(self) -> float:
        """Return the seconds of the clock of the disk it lies on, which machines that share it have in common."""
        if self.reads_only:
            return time.time()
        os.utime(self._path)
        return self._path.stat().st_mtime

    @staticmethod
    def as_bytes(column: str) -> str:
        """Return a cast: text that is no longer UTF-8 would be an error of the whole query."""
        return f"CAST({column} AS BLOB)"

    @staticmethod
    def size_of(column: str) -> str:
        """Return the length of what is stored."""
        return f"length(CAST({column} AS BLOB))"


@contextmanager
def opened_store(path: Path, tables: str, mend: str = REMEMBERED, *, private: bool = True) -> Iterator[Database]:
    """Open what is remembered in the file at `path`, or in the store in its place, for one block.

    Args:
        path: of the file.
        tables: statements that make what is not there yet.
        mend: what to do where a file is damaged.
        private: whether a file that is made now is for this user alone.

    Raises:
        RagLabError: if it cannot be used.
    """
    if address := store_address():
        with opened_schema(address, schema_of(path), tables) as shared:
            yield shared
    else:
        with opened(path, tables, mend, SqliteDatabase, private=private) as database:
            file = cast(SqliteDatabase, database)
            _bring_up(file, path)
            yield file


def is_there(path: Path) -> bool:
    """Tell whether anything may be remembered there."""
    return bool(store_address()) or path.exists()


def store_address() -> str:
    """Return the address of the shared store, or '' where files are used.

    Raises:
        ConfigError: if the environment names something else than a PostgreSQL database.
    """
    address = os.environ.get(VARIABLE, "")
    if address and not address.startswith(_SCHEMES):
        raise ConfigError(NO_ADDRESS)
    return address


def schema_of(path: Path) -> str:
    """Return the schema that stands for a file: that of the home is one for all homes, others have one a path."""
    stem = "".join(letter if letter.isalnum() else "_" for letter in path.stem.lower())
    resolved = path.resolve()
    if resolved.parent == home():
        return f"rag_lab_{stem}"
    return f"rag_lab_{stem}_{sha256(str(resolved).encode()).hexdigest()[:16]}"


def _bring_up(database: SqliteDatabase, path: Path) -> None:
    """Refuse a file of a newer version; to one from before versions were written, add what it lacks.

    One that cannot be written stays as it is.
    """
    (version,) = database.execute("PRAGMA user_version").fetchone()
    refuse_newer(version, path)
    if version == VERSION or database.reads_only:
        return
    with database:
        database.lock()
        columns = {row[1] for row in database.execute("PRAGMA table_info(remembered)")}
        if columns and "made" not in columns:
            database.execute("ALTER TABLE remembered ADD COLUMN made REAL NOT NULL DEFAULT 0")
            database.execute("ALTER TABLE remembered ADD COLUMN run TEXT NOT NULL DEFAULT ''")
        database.execute(f"PRAGMA user_version = {VERSION}")
