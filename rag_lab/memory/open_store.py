"""Where results are remembered: SQLite files in the home folder, or one PostgreSQL database for many machines.

The environment decides: RAG_LAB_STORE=postgresql://user@host/database. Each file has a schema of its own there.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from rag_lab._kit.database import REMEMBERED, opened
from rag_lab._kit.home import home
from rag_lab.errors import ConfigError
from rag_lab.memory.postgres import NO_ADDRESS, VERSION, PostgresDatabase, opened_schema, refuse_newer

VARIABLE = "RAG_LAB_STORE"
_SCHEMES = ("postgresql://", "postgres://")


class SqliteDatabase(sqlite3.Connection):
    """A file."""

    as_bytes = "CAST({} AS BLOB)"  # selects a column: text that is no longer UTF-8 would be an error of the query
    size_of = "length(CAST({} AS BLOB))"  # selects the bytes of what a column stores

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


Database = SqliteDatabase | PostgresDatabase  # statements have `?` for values; as a block it is a transaction


@contextmanager
def opened_store(path: Path, tables: str, mend: str = REMEMBERED, *, private: bool = True) -> Iterator[Database]:
    """Open what is remembered in the file at `path`, or in the store in its place, for one block.

    `tables` are statements that make what is not there yet; see `_kit.database.opened`.
    """
    if address := store_address():
        # The schema that stands for a file: that of the home is one for all homes, others have one a path.
        schema, resolved = "".join(c if c.isalnum() else "_" for c in f"rag_lab_{path.stem.lower()}"), path.resolve()
        if resolved.parent != home():
            schema = f"{schema}_{sha256(str(resolved).encode()).hexdigest()[:16]}"
        with opened_schema(address, schema, tables) as shared:
            yield shared
    else:
        with opened(path, tables, mend, SqliteDatabase, private=private) as database:
            file = cast(SqliteDatabase, database)
            (version,) = file.execute("PRAGMA user_version").fetchone()
            refuse_newer(version, path)
            if version != VERSION and not file.reads_only:  # add what it lacks from before versions were written
                with file:
                    file.lock()
                    columns = {row[1] for row in file.execute("PRAGMA table_info(remembered)")}
                    if columns and "made" not in columns:
                        file.execute("ALTER TABLE remembered ADD COLUMN made REAL NOT NULL DEFAULT 0")
                        file.execute("ALTER TABLE remembered ADD COLUMN run TEXT NOT NULL DEFAULT ''")
                    file.execute(f"PRAGMA user_version = {VERSION}")
            yield file


def is_there(path: Path) -> bool:
    """Tell whether anything may be remembered there."""
    return bool(store_address()) or path.exists()


def store_address() -> str:
    """Return the address of the shared store, or '' where files are used."""
    address = os.environ.get(VARIABLE, "")
    if address and not address.startswith(_SCHEMES):
        raise ConfigError(NO_ADDRESS)
    return address
