"""Care for what is remembered: what there is, whether it is whole, and what may go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rag_lab.memory.open_store import Database, SqliteDatabase
from rag_lab.memory.tables import checksum, content, memories, opened_memory

_ROWS_AT_ONCE = 1000


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
    """Which entries are meant: those that all that is given is true of.

    Args:
        older_than_s: made so long ago, or before that was noted.
        run: made for a run with a folder of this name; others may have used them since.
        larger_than_bytes: with a value of more bytes.
    """

    older_than_s: float | None = None
    run: str | None = None
    larger_than_bytes: float | None = None


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
    """How many entries were looked at, and the memory and key of each that is damaged."""

    entries: int = 0
    damaged: list[tuple[str, str]] = field(default_factory=list)


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
            found += [
                Holding(name, run, n, int(size), *made) for run, n, size, *made in database.execute(query, values)
            ]
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
                checked.damaged += [(name, key_text(entry.key)) for entry in damaged]
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


def key_text(key: str | bytes) -> str:
    """Return a key as it is shown and exported."""
    return key if isinstance(key, str) else key.hex()


def _condition(choice: Choice, database: Database) -> tuple[str, list[float | str]]:
    parts: dict[str, float | str] = {}
    if choice.older_than_s is not None:
        parts["made < ?"] = database.now() - choice.older_than_s
    if choice.run is not None:
        parts["run = ?"] = choice.run
    if choice.larger_than_bytes is not None:
        parts[f"{database.size_of.format('value')} > ?"] = choice.larger_than_bytes
    return " AND ".join(parts) or "1 = 1", list(parts.values())
