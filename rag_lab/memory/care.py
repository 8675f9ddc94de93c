"""Care for what is remembered: what there is, whether it is whole, what may go; and a store as a file for another.

An exported store has JSON lines, compressed, with a checksum an entry.
"""

import base64
import gzip
import json
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from rag_lab.errors import RagLabError
from rag_lab.memory.open_store import VERSION, Database, SqliteDatabase, refuse_newer
from rag_lab.memory.results import INT8, MEMORIES, batches, checksum, content, memories, opened_memory

_ROWS_AT_ONCE = 1000
_MOST_LINE_BYTES = 64 * 1024 * 1024
_SECONDS_BYTES = 8  # before a vector, what it took


@dataclass(frozen=True, slots=True)
class Holding:
    """What one memory holds of one run: values in bytes, and when the first and the last of them were made."""

    memory: str
    run: str
    entries: int
    n_bytes: int
    oldest_s: float  # since 1970; 0 where that was not noted yet
    newest_s: float


@dataclass(frozen=True, slots=True)
class Choice:
    """Which entries are meant: those of which all is true."""

    older_than_s: float | None = None  # made so long ago, or before that was noted
    run: str | None = None  # made for a run with a folder of this name; others may have used them since
    larger_than_bytes: float | None = None  # with a value of more bytes


@dataclass(frozen=True, slots=True)
class Entry:
    """A row as it is stored, whole or not; `room` is '' for vectors."""

    key: str | bytes
    value: bytes
    sum: bytes
    made: float
    run: str
    room: str

    def is_whole(self) -> bool:
        """Tell whether its checksum is right."""
        return self.sum == checksum(self.key, self.value)


@dataclass(slots=True)
class Checked:
    """How many entries were looked at, or taken; the memory and key of those that are damaged, and refused lines."""

    entries: int = 0
    damaged: list[tuple[str, str]] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)


def holdings(choice: Choice | None = None) -> list[Holding]:
    """Return what the store holds, or of it what is chosen, by memory and run."""
    found = []
    for name in memories():
        with opened_memory(name) as database:
            where, values = _condition(choice or Choice(), database)
            n_bytes = database.size_of.format("value")
            query = (
                f"SELECT run, count(*), sum({n_bytes}), min(made), max(made) FROM remembered WHERE {where} "  # noqa: S608 - our names
                "GROUP BY run ORDER BY run"
            )
            found += [Holding(name, run, n, int(size), *its) for run, n, size, *its in database.execute(query, values)]
    return found


def prune(choice: Choice) -> int:
    """Delete what is chosen, give the room of files back to the disk, and return how many entries went."""
    n = 0
    for name in memories():
        with opened_memory(name) as database:
            where, values = _condition(choice, database)
            with database:
                gone = database.execute(f"DELETE FROM remembered WHERE {where}", values).rowcount  # noqa: S608 - our names
            if gone and isinstance(database, SqliteDatabase):
                database.execute("VACUUM")
            n += gone
    return n


def verify(*, drop: bool = False) -> Checked:
    """Compare each value with its checksum; with `drop` delete those that are damaged."""
    checked = Checked()
    for name in memories():
        with opened_memory(name) as database:
            for entries in portions(database, name):
                damaged = [entry for entry in entries if not entry.is_whole()]
                checked.entries += len(entries)
                keys = (entry.key for entry in damaged)
                checked.damaged += [(name, key if isinstance(key, str) else key.hex()) for key in keys]
                if drop and damaged:
                    with database:
                        database.executemany("DELETE FROM remembered WHERE key = ?", [(each.key,) for each in damaged])
    return checked


def portions(database: Database, name: str) -> Iterator[list[Entry]]:
    """Yield all entries of a memory in the order of their keys, so many at a time that any number fits in memory."""
    room = "''" if name == "vectors" else "room"
    value, kept = (database.as_bytes.format(column) for column in ("value", "sum"))
    query = f"SELECT key, {value}, {kept}, made, run, {room} FROM remembered"  # noqa: S608 - our names
    after: list[str | bytes] = []
    while True:
        where = "WHERE key > ?" if after else ""
        rows = database.execute(f"{query} {where} ORDER BY key LIMIT {_ROWS_AT_ONCE}", after).fetchall()
        if not rows:
            return
        yield [Entry(key, content(value), content(kept), *others) for key, value, kept, *others in rows]
        after = [rows[-1][0]]


def _condition(choice: Choice, database: Database) -> tuple[str, list[float | str]]:
    parts: dict[str, float | str] = {}
    if choice.older_than_s is not None:
        parts["made < ?"] = database.now() - choice.older_than_s
    if choice.run is not None:
        parts["run = ?"] = choice.run
    if choice.larger_than_bytes is not None:
        parts[f"{database.size_of.format('value')} > ?"] = choice.larger_than_bytes
    return " AND ".join(parts) or "1 = 1", list(parts.values())


def export_store(path: Path) -> tuple[int, int]:
    """Write all whole entries to `path`, and return how many those are, and how many are damaged and stay out."""
    part = path.with_name(f"{path.name}.part")
    written = damaged = 0
    try:
        with gzip.open(part, "wt", encoding="utf-8", compresslevel=5) as file:
            file.write(json.dumps({"rag_lab_store": VERSION}) + "\n")
            for name in memories():
                with opened_memory(name) as database:
                    for entries in portions(database, name):
                        whole = [entry for entry in entries if entry.is_whole()]
                        file.writelines(_line(name, entry) for entry in whole)
                        written, damaged = written + len(whole), damaged + len(entries) - len(whole)
        part.replace(path)
    except OSError as error:
        raise RagLabError(f"Cannot write {path}: {error.strerror or error}; name one in a folder with room.") from None
    finally:
        part.unlink(missing_ok=True)
    return written, damaged


def import_store(path: Path) -> Checked:
    """Add the entries of an exported file; what the store has stays, and a line that is damaged is refused alone."""
    taken = Checked()
    try:
        with gzip.open(path, "rb") as file:
            lines = enumerate(_lines(cast(BinaryIO, file)), start=1)
            try:
                version = json.loads(next(lines, (1, b""))[1])["rag_lab_store"]
            except (ValueError, KeyError, TypeError, RecursionError):
                version = None
            if not isinstance(version, int) or isinstance(version, bool):
                raise RagLabError(f"{path} is no exported store; `rag-lab store export FILE` writes one.")
            refuse_newer(version, path)
            for some in batches(lines, 1000):
                _take(some, taken)
    except (OSError, EOFError, zlib.error) as error:
        before = f"{taken.entries:,} entries before that were taken" if taken.entries else "nothing was taken"
        raise RagLabError(f"{path} cannot be read as an exported store ({error}); {before}; export it again.") from None
    return taken


def _line(name: str, entry: Entry) -> str:
    if isinstance(entry.key, bytes):
        key, value = entry.key.hex(), base64.b64encode(entry.value).decode()
    else:
        key, value = entry.key, entry.value.decode()
    row = {"memory": name, "key": key, "room": entry.room, "value": value, "sum": entry.sum.hex()}
    return json.dumps(row | {"made": entry.made, "run": entry.run}, ensure_ascii=False) + "\n"


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield lines; of one that is longer than any entry, b'' once."""
    while line := file.readline(_MOST_LINE_BYTES):
        if line.endswith(b"\n") or len(line) < _MOST_LINE_BYTES:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(_MOST_LINE_BYTES)
        yield b""


def _take(lines: list[tuple[int, bytes]], taken: Checked) -> None:
    found: dict[str, list[Entry]] = {}
    for number, line in lines:
        try:
            name, entry = _entry(json.loads(line))
            found.setdefault(name, []).append(entry)
        except (ValueError, KeyError, TypeError, RecursionError):
            taken.refused.append(number)
    for name, entries in found.items():
        columns = ["key", "value", "sum", "made", "run"]
        rows: list[tuple[Any, ...]] = [(one.key, one.value, one.sum, one.made, one.run) for one in entries]
        if name != "vectors":
            columns.append("room")
            rows = [(row[0], row[1].decode(), *row[2:], one.room) for row, one in zip(rows, entries, strict=True)]
        marks = ", ".join("?" * len(columns))
        statement = f"INSERT INTO remembered ({', '.join(columns)}) VALUES ({marks}) ON CONFLICT DO NOTHING"  # noqa: S608 - our names
        with opened_memory(name) as database, database:
            database.executemany(statement, rows)
        taken.entries += len(entries)


def _entry(row: dict[str, Any]) -> tuple[str, Entry]:
    """Return the memory and the entry of a line; an error of Python's where anything in it is wrong."""
    name, of_vectors = row["memory"], row["memory"] == "vectors"
    key: str | bytes = bytes.fromhex(row["key"]) if of_vectors else row["key"]
    value = base64.b64decode(row["value"], validate=True) if of_vectors else row["value"].encode()
    kept = bytes.fromhex(row["sum"])
    made, run, room = float(row["made"]), row["run"], row["room"]
    texts = (row["key"], run, room)
    if name not in MEMORIES or not math.isfinite(made) or not all(isinstance(text, str) for text in texts):
        raise ValueError
    if any("\0" in text for text in texts) or kept != checksum(key, value) or (b"\0" in value and not of_vectors):
        raise ValueError
    "".join(texts).encode()
    if of_vectors:
        is_int8 = value[_SECONDS_BYTES:].startswith(INT8)
        if not is_int8 and not np.isfinite(np.frombuffer(value, "<f4", offset=_SECONDS_BYTES)).all():
            raise ValueError
    else:
        json.loads(value)
    return name, Entry(key, value, kept, made, run, room)
