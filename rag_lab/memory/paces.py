"""How fast remote models may be asked, shared by processes: what was sent in the last minute, and when to go on.

A request reserves the next moment at which it keeps the limits, and is sent then: nobody asks again and again, and who
came first goes first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from rag_lab.memory.open_store import Database, is_there, opened_store

WINDOW_S = 60.0
GROWTH = 1.1  # a minute without a refusal
_SLOWER = 0.5  # of the rate at which a server refused
_SETTLING_S = 5.0  # requests that were under way when the server refused are refused, too
_FORGOTTEN_S = 3600.0

_SCHEMA = """
PRAGMA synchronous=OFF;
CREATE TABLE IF NOT EXISTS sent (model TEXT NOT NULL, at REAL NOT NULL, tokens INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS sent_at ON sent (model, at);
CREATE TABLE IF NOT EXISTS refused (
    model TEXT PRIMARY KEY, at REAL NOT NULL, until REAL NOT NULL, requests_per_minute REAL NOT NULL) WITHOUT ROWID;
"""

_REFUSE = (
    "INSERT INTO refused VALUES (?, ?, ?, ?) ON CONFLICT (model) DO UPDATE SET "
    "at = excluded.at, until = excluded.until, requests_per_minute = excluded.requests_per_minute"
)


@dataclass(frozen=True, slots=True)
class Rates:
    """What a server takes in a minute; None where that is not known."""

    requests: float | None = None
    tokens: float | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """A request: when it was sent, or will be, in seconds, and its tokens, those of the longest reply included."""

    at_s: float
    tokens: int


def next_moment(sent: Sequence[Sent], now_s: float, tokens: int, rates: Rates) -> float:
    """Return when a request of `tokens` may be sent, in seconds, so that no minute holds more than `rates`.

    It is not before the last of `sent`, which are in order. A request of more tokens than a minute takes waits for a
    minute of its own. Source: the sliding window log of rate limiting.
    """
    at_s = max([now_s, *(one.at_s for one in sent[-1:])])
    if rates.requests is not None and len(sent) >= (most := max(1, int(rates.requests))):
        at_s = max(at_s, sent[-most].at_s + WINDOW_S)
    if rates.tokens is not None:
        total = tokens
        for one in reversed(sent):
            total += one.tokens
            if total > rates.tokens:
                at_s = max(at_s, one.at_s + WINDOW_S)
                break
    return at_s


class Paces:
    """The paces of all models, in the file at `path`. Each call opens its own connection, so threads may share it.

    Moments are kept by the clock of the store, and given by that of whoever asks: clocks of machines differ.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self.clock = clock

    def reserve(self, model: str, tokens: int, rates: Rates) -> float:
        """Return when a request may be sent, in seconds of the clock; it is counted as sent then.

        Once a server has refused for lack of patience, it is asked at half the rate, and by a tenth more each minute.
        """
        with self._opened() as database, database:
            database.lock()
            now_s = self.clock() + (ahead_s := _ahead_s(database))
            database.execute("DELETE FROM sent WHERE at <= ?", (now_s - WINDOW_S,))
            sent = [
                Sent(*row)
                for row in database.execute("SELECT at, tokens FROM sent WHERE model = ? ORDER BY at", [model])
            ]
            until_s, learnt = _after_refusal(database, model, now_s)
            known = [rate for rate in (rates.requests, learnt) if rate is not None]
            at_s = next_moment(sent, max(now_s, until_s), tokens, Rates(min(known, default=None), rates.tokens))
            database.execute("INSERT INTO sent VALUES (?, ?, ?)", (model, at_s, tokens))
        return at_s - ahead_s

    def rests_until(self, model: str) -> float:
        """Return until when nobody asks the model, as its server wants rest; a past moment where it wants none."""
        if not is_there(self.path):
            return 0.0
        with self._opened() as database:
            ahead_s = _ahead_s(database)
            return _after_refusal(database, model, self.clock() + ahead_s)[0] - ahead_s

    def refuse(self, model: str, wait_s: float) -> None:
        """Note that the server refused a request for the number of them, and for how long to leave it alone."""
        with self._opened() as database, database:
            database.lock()
            now_s = self.clock() + _ahead_s(database)
            row = database.execute(
                "SELECT at, until, requests_per_minute FROM refused WHERE model = ?", [model]
            ).fetchone()
            if row and now_s - row[0] < _SETTLING_S:
                database.execute("UPDATE refused SET until = ? WHERE model = ?", (max(row[1], now_s + wait_s), model))
                return
            query = "SELECT count(*), min(at) FROM sent WHERE model = ? AND at <= ?"
            n, first_s = database.execute(query, (model, now_s)).fetchone()
            seen = n * WINDOW_S / max(1.0, now_s - first_s) if n else WINDOW_S
            _, learnt = _after_refusal(database, model, now_s)
            rate = max(1.0, _SLOWER * min(seen, seen if learnt is None else learnt))
            database.execute(_REFUSE, (model, now_s, now_s + wait_s, rate))

    def _opened(self) -> AbstractContextManager[Database]:
        return opened_store(self.path, _SCHEMA)


def _ahead_s(database: Database) -> float:
    """Return by how much the clock of the store is ahead of this machine's, to a tenth: what asking takes is not it."""
    return round(database.now() - time.time(), 1)


def _after_refusal(database: Database, model: str, now_s: float) -> tuple[float, float | None]:
    """Return until when the model rests, and how many requests a minute it takes by what was learnt."""
    query = "SELECT at, until, requests_per_minute FROM refused WHERE model = ?"
    row = database.execute(query, [model]).fetchone()
    if row is None or now_s - row[1] > _FORGOTTEN_S:
        return 0.0, None
    at_s, until_s, rate = row
    return until_s, rate * GROWTH ** (max(0.0, now_s - max(at_s, until_s)) / WINDOW_S)
