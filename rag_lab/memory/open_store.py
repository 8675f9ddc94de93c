"""Where results are remembered: SQLite files in the home folder, or one PostgreSQL database for many machines.

The environment decides: RAG_LAB_STORE=postgresql://user@host/database. Each file has a schema of its own there.
Statements are written so that both understand them, with `?` for values; what they do not share is types, the lock of
a whole file, and the clock. A file that is damaged or cannot be written is a sentence, a server that is gone is waited
for.
"""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from rag_lab._kit.home import PRIVATE, home
from rag_lab.errors import ConfigError, DamagedFile, RagLabError
from rag_lab.redaction import one_line

REMEMBERED = "delete it with its -wal and -shm files, and what it remembered is computed again"
_UNUSABLE = {  # codes that say nothing about the content of a file
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR),
    *(sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY),
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
    """Let readers and a writer not wait for each other; for this statement SQLite does not wait by itself."""
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


VERSION = 1
MODULES_MISSING = "RAG_LAB_STORE names a PostgreSQL database, which needs psycopg: pip install 'rag_lab[postgres]'"
NO_ADDRESS = (
    "RAG_LAB_STORE is not the address of a PostgreSQL database; write postgresql://host:5432/database with "
    "user:password@ before the host, and in the password %40 for @, %2F for /, %25 for %."
)
WAIT_VARIABLE = "RAG_LAB_STORE_WAIT_S"
_WAIT_S = 120.0
_CONNECT_S = 5
# Waiting mends no wrong password, and no database or host that is not there.
_PERMANENT = ("authentication", "does not exist", "resolve", "not known", "role ")
_LOGGER = logging.getLogger(__name__)
_LOCK = threading.Lock()
_IDLE: dict[tuple[int, str, str], list[Any]] = {}  # by process, address and schema: a fork must not share them
_READY: set[tuple[int, str, str]] = set()
_TYPES = (
    (r"INTEGER PRIMARY KEY\b", "BIGSERIAL PRIMARY KEY"),
    (r"\bINTEGER\b", "BIGINT"),
    (r"\bREAL\b", "DOUBLE PRECISION"),
    (r"\bBLOB\b", "BYTEA"),
    (r"\)\s*WITHOUT ROWID", ")"),
    (r"PRAGMA [^;]+;", ""),
)


def refuse_newer(version: int, place: object) -> None:
    """Raise an error where a store was written by a later version of the workbench."""
    if version > VERSION:
        raise RagLabError(
            f"{place} is a store of version {version}, and this workbench reads up to version {VERSION}: install the "
            "newer workbench, or name another folder by RAG_LAB_HOME or another database by RAG_LAB_STORE."
        )


class PostgresDatabase:
    """A connection that takes the statements of a SQLite one. As a block it is a transaction."""

    as_bytes = "{}"  # selects a column so that damage in it is no error: a server's text is always text
    size_of = "octet_length({})"  # selects the bytes of what a column stores, before the server compresses it

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Execute a statement and return its cursor."""
        return self._connection.execute(statement.replace("%", "%%").replace("?", "%s"), list(values) or None)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Execute a statement for each row."""
        with self._connection.cursor() as cursor:
            cursor.executemany(statement.replace("%", "%%").replace("?", "%s"), list(rows))

    def lock(self) -> None:
        """Be alone in this schema until the transaction ends."""
        self._connection.execute("SELECT pg_advisory_xact_lock(hashtext(current_schema()))")

    def now(self) -> float:
        """Return the seconds of the server's clock, one for all machines."""
        (seconds,) = self._connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
        return float(seconds)

    def __enter__(self) -> PostgresDatabase:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._connection.commit() if kind is None else self._connection.rollback()


@contextmanager
def opened_schema(address: str, schema: str, tables: str) -> Iterator[PostgresDatabase]:
    """Open a schema of the database at `address`, made where it is not there, for one block."""
    psycopg, place = _library(), place_of(address)
    at, connection = (os.getpid(), address, schema), None
    began, is_logged = time.monotonic(), False
    try:
        while connection is None:  # while none answers, wait, and say so once
            try:
                connection = _answering(at, tables)
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                message = str(error).lower()
                if (
                    isinstance(error, psycopg.errors.DiskFull)
                    or any(words in message for words in _PERMANENT)
                    or time.monotonic() - began > float(os.environ.get(WAIT_VARIABLE) or _WAIT_S)
                ):
                    raise
                if not is_logged:
                    _LOGGER.warning("The store at %s does not answer; waiting for it.", place)
                    is_logged = True
                time.sleep(1.0)
        try:
            yield PostgresDatabase(connection)
            connection.rollback()
        except BaseException:
            connection.close()
            raise
        with _LOCK:
            _IDLE.setdefault(at, []).append(connection)
    except psycopg.Error as error:
        reason = one_line(str(error)).rstrip(".")
        if isinstance(error, psycopg.errors.DiskFull):
            raise RagLabError(
                f"The store at {place} has no room: {reason}; make room on the disk of its server and start the same "
                "command again: it goes on."
            ) from None
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            raise RagLabError(
                f"The store at {place} does not answer: {reason}; see that RAG_LAB_STORE names a PostgreSQL server "
                "that runs, and start the same command again: it goes on."
            ) from None
        raise RagLabError(f"The store at {place} refused: {reason}.") from error


def place_of(address: str) -> str:
    """Return where a store is, without who asks it and their password; an address may name several hosts."""
    psycopg = _library()
    try:
        known = psycopg.conninfo.conninfo_to_dict(address)
    except psycopg.ProgrammingError:
        raise ConfigError(NO_ADDRESS) from None
    hosts, ports = (str(known.get(name, "")).split(",") for name in ("host", "port"))
    ports = ports * len(hosts) if len(ports) == 1 else ports
    database = known.get("dbname", "")
    if (
        len(ports) != len(hosts)
        or not all(re.fullmatch("[0-9]{0,5}", one) and 0 < int(one or 1) < 2**16 for one in ports)
        or "@" in f"{hosts}{database}"
    ):
        raise ConfigError(NO_ADDRESS)
    places = (f"{host or 'this machine'}:{port or 5432}" for host, port in zip(hosts, ports, strict=True))
    return f"{','.join(places)}/{database}"


def _answering(at: tuple[int, str, str], tables: str) -> Any:
    """Return an idle connection that answers, else a new one."""
    with _LOCK:
        known = _IDLE.get(at) or []
        connection = known.pop() if known else None
    if connection is not None:
        try:
            connection.execute("SELECT 1")
            return connection
        except _library().Error:
            connection.close()
            with _LOCK:
                _IDLE.pop(at, None)  # the others are as old
    _, address, schema = at
    connection = _library().connect(address, connect_timeout=_CONNECT_S, options=f"-c search_path={schema}")
    if at not in _READY:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtext('rag_lab'))")  # two may begin at once
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            connection.execute("CREATE TABLE IF NOT EXISTS store_version (version BIGINT NOT NULL)")
            row = connection.execute("SELECT max(version) FROM store_version").fetchone()
            refuse_newer(row[0] or 0, f"The database at {place_of(address)}")
            for pattern, meant in _TYPES:
                tables = re.sub(pattern, meant, tables)
            connection.execute(tables)
            if row[0] is None:
                connection.execute("INSERT INTO store_version VALUES (%s)", [VERSION])
        connection.commit()
        _READY.add(at)
    return connection


def _library() -> Any:
    try:
        import psycopg
    except ImportError:
        raise RagLabError(f"{MODULES_MISSING}.") from None
    return psycopg


VARIABLE = "RAG_LAB_STORE"


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
    """Open what is remembered in the file at `path`, or in the store in its place, for one block; see `opened`."""
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
    if address and not address.startswith(("postgresql://", "postgres://")):
        raise ConfigError(NO_ADDRESS)
    return address
