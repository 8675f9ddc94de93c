"""A PostgreSQL database in place of a SQLite file: the same statements, one schema for each file that it stands for.

Statements are written so that both understand them, with `?` for values. What they do not share stands here: types,
the lock of a whole file, the clock. A server that is gone is waited for.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from rag_lab.errors import ConfigError, RagLabError

VERSION = 1
MODULES_MISSING = "RAG_LAB_STORE names a PostgreSQL database, which needs psycopg: pip install 'rag_lab[postgres]'"
NO_ADDRESS = (
    "RAG_LAB_STORE is not the address of a PostgreSQL database; write postgresql://host:5432/database with "
    "user:password@ before the host, and in the password %40 for @, %2F for /, %25 for %."
)
WAIT_VARIABLE = "RAG_LAB_STORE_WAIT_S"
_WAIT_S = 120.0
_AGAIN_S = 1.0
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
        return self._connection.execute(_placed(statement), list(values) or None)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Execute a statement for each row."""
        with self._connection.cursor() as cursor:
            cursor.executemany(_placed(statement), list(rows))

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
    at = (os.getpid(), address, schema)
    try:
        connection = _waited_for(at, tables)
        try:
            yield PostgresDatabase(connection)
            connection.rollback()
        except BaseException:
            connection.close()
            raise
        with _LOCK:
            _IDLE.setdefault(at, []).append(connection)
    except psycopg.errors.DiskFull as error:
        raise RagLabError(
            f"The store at {place} has no room: {_line(error)}; make room on the disk of its server and "
            "start the same command again: it goes on."
        ) from None
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise RagLabError(
            f"The store at {place} does not answer: {_line(error)}; see that RAG_LAB_STORE names a PostgreSQL "
            "server that runs, and start the same command again: it goes on."
        ) from None
    except psycopg.Error as error:
        raise RagLabError(f"The store at {place} refused: {_line(error)}.") from error


def place_of(address: str) -> str:
    """Return where a store is, without who asks it and their password; an address may name several hosts.

    Raises:
        ConfigError: if PostgreSQL's own library would not read it so; what was given may hold a password.
    """
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


def _waited_for(at: tuple[int, str, str], tables: str) -> Any:
    """Return a connection that answers; while none does, wait, and say so once."""
    psycopg = _library()
    began, is_logged = time.monotonic(), False
    while True:
        try:
            return _answering(at, tables)
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            message = str(error).lower()
            if (
                isinstance(error, psycopg.errors.DiskFull)
                or any(words in message for words in _PERMANENT)
                or time.monotonic() - began > float(os.environ.get(WAIT_VARIABLE) or _WAIT_S)
            ):
                raise
            if not is_logged:
                _LOGGER.warning("The store at %s does not answer; waiting for it.", place_of(at[1]))
                is_logged = True
            time.sleep(_AGAIN_S)


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


def _placed(statement: str) -> str:
    return statement.replace("%", "%%").replace("?", "%s")


def _line(error: Exception) -> str:
    from rag_lab.redaction import one_line

    return one_line(str(error)).rstrip(".")


def _library() -> Any:
    try:
        import psycopg
    except ImportError:
        raise RagLabError(f"{MODULES_MISSING}.") from None
    return psycopg
