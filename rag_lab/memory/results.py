"""A persistent map from keys to JSON texts, shared by processes: what one has computed, none computes again.

A process claims keys before it computes them, so that two variants running side by side split shared work between
them instead of doing it twice. The claims of a process that has died are void, which is how a killed sweep resumes.
Whether one on another machine, or in a container that is gone, has died cannot be asked: it renews its claims as long
as it computes, however long one batch takes, and they are void once it does not.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from threading import Event, Thread
from typing import TypeVar

from rag_lab._kit.process import Process
from rag_lab.errors import RagLabError
from rag_lab.memory import tables
from rag_lab.memory.open_store import Database, is_there, opened_store
from rag_lab.memory.tables import RESULTS, checksum, origin
from rag_lab.redaction import hide_known_jsons

Item = TypeVar("Item")

_RENEW_S = 10.0
_VOID_S = 60.0  # after which a claim that nobody renewed is void, where its process cannot be asked
_HOLDER = "(host, system, pid, began) = (?, ?, ?, ?)"
_STORE = (
    "INSERT INTO remembered (key, room, value, sum, made, run) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE "
    "SET room = excluded.room, value = excluded.value, sum = excluded.sum, made = excluded.made, run = excluded.run"
)
_CLAIM = (
    "INSERT INTO held VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET host = excluded.host, "
    "system = excluded.system, pid = excluded.pid, began = excluded.began, seen = excluded.seen"
)
_KEYS_AT_ONCE = 500  # below the limit of variables in a statement


@dataclass(slots=True)
class Replayed:
    """How many seconds those results took when they were made that were found made since this was handed out.

    Variants share embeddings and pair scores. The variant that comes second finds them made, and would look quicker
    than it is: what they took is added to its own seconds, so that its result costs what it costs alone.
    """

    seconds: float = 0.0


class Memory:
    """The map. Each call opens its own connection, so instances are cheap and safe to share between threads."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def recall(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the values of those of `keys` that are known; one that was damaged on disk no longer is."""
        if not is_there(self.path):
            return {}
        with self.opened() as database:
            found = tables.recall(database, "remembered", list(keys))
        return {key: value.decode() for key, value in found.items()}

    def store(self, room: str, values: Mapping[str, str]) -> None:
        """Remember `values` under `room` (a label for listings) and give up this process's claims on them.

        Secrets that this process knows are hidden in them.
        """
        with self.opened() as database, database:
            clean = zip(values, hide_known_jsons(values.values()), strict=True)
            made = origin(database)
            rows = [(key, room, value, checksum(key, value.encode()), *made) for key, value in clean]
            database.executemany(_STORE, rows)
            _give_up(database, values)

    def claim(self, keys: Sequence[str], limit: int) -> list[str]:
        """Claim up to `limit` of `keys` that nobody has stored or is computing; return those now this process's own."""
        me = Process.this()
        with self.opened() as database, database:
            database.lock()
            now_s = database.now()
            mine = list(islice(_free(database, keys, me, now_s), limit))
            database.executemany(_CLAIM, [(key, *me, now_s) for key in mine])
        return mine

    @contextmanager
    def keeping(self, claimed: Iterable[str]) -> Iterator[None]:
        """Keep one's claims in this block, however long it takes; at its end give up those not stored in it."""
        ended = Event()

        def renew() -> None:
            while not ended.wait(_RENEW_S):
                with suppress(RagLabError), self.opened() as database, database:
                    database.execute(f"UPDATE held SET seen = ? WHERE {_HOLDER}", (database.now(), *Process.this()))  # noqa: S608 - a constant

        Thread(target=renew, daemon=True).start()
        try:
            yield
        finally:
            ended.set()
            self.release(claimed)

    def release(self, keys: Iterable[str]) -> None:
        """Give up claims without storing a value."""
        with self.opened() as database, database:
            _give_up(database, keys)

    def holders(self, keys: Iterable[str]) -> list[Process]:
        """Return those who have claims on any of `keys`."""
        with self.opened() as database:
            return list(dict.fromkeys(process for process, _ in _owners(database, list(keys)).values()))

    def counts(self) -> dict[str, int]:
        """Return how many results each room has."""
        if not is_there(self.path):
            return {}
        with self.opened() as database:
            return dict(database.execute("SELECT room, count(*) FROM remembered GROUP BY room ORDER BY room"))

    def opened(self) -> AbstractContextManager[Database]:
        """Hold a connection in a block; without one each call writes the whole log back when it closes the last."""
        return opened_store(self.path, RESULTS)


def batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield consecutive lists of `size` items, the last one maybe shorter."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def _give_up(database: Database, keys: Iterable[str]) -> None:
    """Delete this process's claims; one that was taken for void belongs to another by now."""
    me = Process.this()
    database.executemany(f"DELETE FROM held WHERE key = ? AND {_HOLDER}", [(key, *me) for key in keys])  # noqa: S608


def _free(database: Database, keys: Sequence[str], me: Process, now_s: float) -> Iterator[str]:
    """Yield those of `keys`, in order, that nobody has stored or is computing."""
    for some in batches(keys, _KEYS_AT_ONCE):
        owners = _owners(database, some)  # first: who stores a result gives it up at the same moment
        query = f"SELECT key FROM remembered WHERE key IN ({','.join('?' * len(some))})"  # noqa: S608
        stored = {row[0] for row in database.execute(query, some)}
        for key in some:
            owner, seen = owners.get(key, (me, now_s))
            runs = owner == me or owner.runs()
            is_void = abs(now_s - seen) > _VOID_S if runs is None else not runs
            if key not in stored and (owner == me or is_void):
                yield key


def _owners(database: Database, keys: Sequence[str]) -> dict[str, tuple[Process, float]]:
    """Return who has claimed each of `keys`, and when that was last renewed."""
    found: dict[str, tuple[Process, float]] = {}
    for some in batches(keys, _KEYS_AT_ONCE):
        marks = ",".join("?" * len(some))
        query = f"SELECT key, host, system, pid, began, seen FROM held WHERE key IN ({marks})"  # noqa: S608
        rows = {row[0]: (Process(*row[1:5]), row[5]) for row in database.execute(query, some)}
        found |= {key: rows[key] for key in some if key in rows}
    return found
