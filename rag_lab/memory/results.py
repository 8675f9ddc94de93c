"""A persistent map from keys to results, shared by processes: what one has computed, none computes again.

A process claims keys before it computes them, so that two variants running side by side split shared work between
them instead of doing it twice. The claims of a process that has died are void, which is how a killed sweep resumes.
Whether one on another machine, or in a container that is gone, has died cannot be asked: it renews its claims as long
as it computes, however long one batch takes, and they are void once it does not.

Columns: `key`, `value` and the checksum `sum` of both; `made`, seconds since 1970 by the store's clock, 0 where that
was not noted yet; `run`, the name of the folder of the run that made it, '' by hand. What was damaged is deleted
where it is met, so that each is counted once, by whichever process met it, and computed again; each process says at its
end how many that were.
"""

import atexit
import hashlib
import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from threading import Event, Thread
from typing import Generic, TypeVar

from rag_lab._kit.home import home
from rag_lab._kit.machine import Process, in_kernel
from rag_lab._kit.wording import counted
from rag_lab.errors import RagLabError
from rag_lab.memory.ledger import LEDGER_VARIABLE
from rag_lab.memory.open_store import Database, is_there, opened_store
from rag_lab.redaction import hide_known_jsons

RESULTS = Path(__file__).with_name("results.sql").read_text(encoding="utf-8")
VECTORS = """
CREATE TABLE IF NOT EXISTS remembered (
    key BLOB PRIMARY KEY, value BLOB NOT NULL, sum BLOB NOT NULL,
    made REAL NOT NULL DEFAULT 0, run TEXT NOT NULL DEFAULT '') WITHOUT ROWID
"""
INT8 = b"int8"  # stands after the seconds of a value that holds rows of bytes: the vectors of a text's tokens
MEMORIES = {"files": RESULTS, "scores": RESULTS, "stages": RESULTS, "vectors": VECTORS, "vision": RESULTS}
_STORE_VECTOR = "INSERT INTO remembered (key, value, sum, made, run) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
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


def recall_vectors(path: Path, keys: Sequence[bytes]) -> dict[bytes, bytes]:
    """Return the values of those of `keys` that the memory of vectors at `path` holds unharmed."""
    with opened_store(path, VECTORS) as store:
        return recall(store, "remembered", keys)


def store_vectors(path: Path, values: Mapping[bytes, bytes]) -> None:
    """Remember vectors; a server may have gone since the last call, and come back."""
    with opened_store(path, VECTORS) as store:
        by = origin(store)
        with store:
            store.executemany(_STORE_VECTOR, [(key, value, checksum(key, value), *by) for key, value in values.items()])


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


@dataclass(slots=True)
class Replayed:
    """How many seconds results took when they were made, of those found made since this was handed out.

    A variant that comes second finds shared embeddings and scores made: what they took is added to its own seconds.
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
            found = recall(database, "remembered", list(keys))
        return {key: value.decode() for key, value in found.items()}

    def store(self, room: str, values: Mapping[str, str], done: Iterable[str] = ()) -> None:
        """Remember `values`, secrets hidden, under `room` (a label for listings); give up this process's claims on them
        and on what is `done`.
        """
        with self.opened() as database, database:
            clean = zip(values, hide_known_jsons(values.values()), strict=True)
            made = origin(database)
            rows = [(key, room, value, checksum(key, value.encode()), *made) for key, value in clean]
            database.executemany(_STORE, rows)
            _give_up(database, {*values, *done})

    def claim(self, keys: Sequence[str], limit: int) -> list[str]:
        """Claim up to `limit` of `keys` that nobody has stored or is computing; return those now this process's own."""
        me = Process.of()
        with self.opened() as database, database:
            database.lock()
            now_s = database.now()
            mine: list[str] = []
            for some in batches(keys, _KEYS_AT_ONCE):
                if len(mine) >= limit:
                    break
                owners = _owners(database, some)  # first: who stores a result gives it up at the same moment
                query = f"SELECT key FROM remembered WHERE key IN ({','.join('?' * len(some))})"  # noqa: S608
                stored = {row[0] for row in database.execute(query, some)}
                for key in some:
                    owner, seen = owners.get(key, (me, now_s))
                    runs = owner == me or owner.runs()
                    is_void = abs(now_s - seen) > _VOID_S if runs is None else not runs
                    if len(mine) < limit and key not in stored and (owner == me or is_void):
                        mine.append(key)
            database.executemany(_CLAIM, [(key, *me, now_s) for key in mine])
        return mine

    @contextmanager
    def keeping(self, claimed: Iterable[str]) -> Iterator[set[str]]:
        """Keep one's claims in this block, however long it takes; at its end give up those left in what is yielded."""
        ended, left = Event(), {*claimed}

        def renew() -> None:
            while not ended.wait(_RENEW_S):
                with suppress(RagLabError), self.opened() as database, database:
                    database.execute(f"UPDATE held SET seen = ? WHERE {_HOLDER}", (database.now(), *Process.of()))  # noqa: S608 - a constant

        Thread(target=renew, daemon=True).start()
        try:
            yield left
        finally:
            ended.set()
            if left:
                with self.opened() as database, database:
                    _give_up(database, left)

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
    me = Process.of()
    database.executemany(f"DELETE FROM held WHERE key = ? AND {_HOLDER}", [(key, *me) for key in keys])  # noqa: S608


def _owners(database: Database, keys: Sequence[str]) -> dict[str, tuple[Process, float]]:
    """Return who has claimed each of `keys`, and when that was last renewed."""
    found: dict[str, tuple[Process, float]] = {}
    for some in batches(keys, _KEYS_AT_ONCE):
        marks = ",".join("?" * len(some))
        query = f"SELECT key, host, system, pid, began, seen FROM held WHERE key IN ({marks})"  # noqa: S608
        rows = {row[0]: (Process(*row[1:5]), row[5]) for row in database.execute(query, some)}
        found |= {key: rows[key] for key in some if key in rows}
    return found


Result = TypeVar("Result")
Report = Callable[[int, str], object]  # results that are new, and ` waits for …` where that takes long

RETRY_VARIABLE = "RAG_LAB_RETRY_FAILED"
_WAIT_S = 0.2
_TELL_AFTER_S = 10.0


def retries_failed() -> bool:
    """Tell whether the sweep asks its kernels to try again what failed for good."""
    return os.environ.get(RETRY_VARIABLE) == "1"


@dataclass(frozen=True, slots=True)
class Work(Generic[Result]):
    """Results that can be computed and remembered."""

    room: str  # what they are called in the memory, and where somebody waits for them
    compute: Callable[[list[str]], Mapping[str, Result]]
    encode: Callable[[Result], str | None]  # None where nothing is remembered: another attempt may do better
    decode: Callable[[str], Result]
    batch_size: int  # how many are claimed and computed at a time; a kill loses as many at most

    def recall(self, memory: Memory | None, keys: Collection[str]) -> dict[str, Result]:
        """Return those results that are remembered."""
        return {key: self.decode(text) for key, text in memory.recall(keys).items()} if memory else {}

    def again(self, memory: Memory | None, failed: Collection[str]) -> dict[str, Result]:
        """Return another attempt at results that failed; each replaces what was remembered once it is there."""
        found: dict[str, Result] = {}
        for keys in batches(failed, self.batch_size):
            found |= self._computed(memory, keys) if memory else self.compute(keys)
        return found

    def do(
        self, memory: Memory | None, missing: Collection[str], report: Report = lambda n, waits: None
    ) -> dict[str, Result]:
        """Return a result for each of `missing`; several processes that miss the same compute each once."""
        found: dict[str, Result] = {}
        if memory is None:
            for keys in batches(missing, self.batch_size):
                found |= self.compute(keys)
                report(len(keys), "")
            return found
        waited_s, waits = 0.0, ""
        while todo := [key for key in missing if key not in found]:
            if mine := memory.claim(todo, self.batch_size):
                with memory.keeping(mine) as left:
                    new = self._computed(memory, mine)
                    left.clear()  # given up where they were stored: connections cost more than what they write
            else:
                new = self.recall(memory, todo)
            if not new:
                time.sleep(_WAIT_S)
                waited_s += _WAIT_S
                if waited_s >= _TELL_AFTER_S and not waits:
                    waits = f" waits for {', '.join(map(str, memory.holders(todo)))}"
                    _LOGGER.warning("%s%s, which computes the same results.", self.room, waits)
            report(len(new), "" if new else waits)
            found |= new
        return found

    def _computed(self, memory: Memory, keys: list[str]) -> dict[str, Result]:
        results = dict(self.compute(keys))
        texts = {key: self.encode(result) for key, result in results.items()}
        memory.store(self.room, {key: text for key, text in texts.items() if text is not None}, keys)
        return results
