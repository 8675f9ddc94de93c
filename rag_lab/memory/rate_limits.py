"""How fast remote models may be asked, shared by processes: a rate limiter, with a circuit breaker for full servers.

A request reserves the next moment at which it keeps the limits, and is sent then: nobody asks again and again, and who
came first goes first. A single refusal stops only the request that was refused. Where a server refuses more than a
quarter of what it was sent last, it is full: all requests wait, then go on at the rate that it accepted, which doubles
every few seconds.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from rag_lab.memory.open_store import Database, is_there, opened_store

WINDOW_S = 60.0
_LATELY = 20  # requests sent last, among which refusals are counted
_FULL_SHARE = 0.25  # of these refused, above which a server is full
_MEASURED_S = 10.0  # over which the rate is measured that a server accepts
_LEAST_S = 0.1  # over which a rate can be measured
_UNKNOWN_PER_SECOND = 1.0  # requests, where it accepted none in that time
_DOUBLES_S = 10.0  # after which it may be asked at twice that rate

_SCHEMA = Path(__file__).with_name("rate_limits.sql").read_text(encoding="utf-8")

_OPEN = (
    "INSERT INTO breakers VALUES (?, ?, ?) ON CONFLICT (model) DO UPDATE SET "
    "until = excluded.until, per_second = excluded.per_second"
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


class RateLimitStore:
    """The paces of all models, in the file at `path`. Each call opens its own connection, so threads may share it.

    Moments are kept by the clock of the store, and given by that of whoever asks: clocks of machines differ.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self.clock = clock

    def reserve(self, model: str, tokens: int, rates: Rates) -> float:
        """Return when a request may be sent, in seconds of the clock; it is counted as sent then."""
        with self._opened() as database, database:
            database.lock()
            now_s = self.clock() + (ahead_s := _ahead_s(database))
            database.execute("DELETE FROM sent WHERE at <= ?", (now_s - WINDOW_S,))
            query = "SELECT at, tokens FROM sent WHERE model = ? ORDER BY at"
            sent = [Sent(*row) for row in database.execute(query, [model])]
            until_s, per_second = _breaker(database, model, now_s)
            at_s = next_moment(sent, max(now_s, until_s), tokens, rates)
            if per_second and sent and (last_s := sent[-1].at_s) >= until_s:
                at_s = max(at_s, last_s + 2 ** ((until_s - last_s) / _DOUBLES_S) / per_second)
            database.execute("INSERT INTO sent VALUES (?, ?, ?)", (model, at_s, tokens))
        return at_s - ahead_s

    def open_until(self, model: str) -> float:
        """Return until when all requests to the model wait, as its server is full; a past moment where it is not."""
        if not is_there(self.path):
            return 0.0
        with self._opened() as database:
            ahead_s = _ahead_s(database)
            return _breaker(database, model, self.clock() + ahead_s)[0] - ahead_s

    def refuse(self, model: str, wait_s: float) -> bool:
        """Note that the server refused a request for its number, and return whether it is full.

        Where it is, all wait `wait_s` seconds.
        """
        with self._opened() as database, database:
            database.lock()
            now_s = self.clock() + _ahead_s(database)
            database.execute("DELETE FROM refusals WHERE at <= ?", (now_s - WINDOW_S,))
            database.execute("INSERT INTO refusals VALUES (?, ?)", (model, now_s))
            query = "SELECT at FROM {} WHERE model = ? AND at <= ? ORDER BY at"
            sent, refused = (
                [at_s for (at_s,) in database.execute(query.format(table), (model, now_s))]
                for table in ("sent", "refusals")
            )
            lately = sent[-_LATELY:]
            if sum(at_s >= lately[0] for at_s in refused if lately) <= _FULL_SHARE * len(lately):
                return False
            until_s = max(now_s + wait_s, _breaker(database, model, now_s)[0])
            since_s = max(sent[0], now_s - _MEASURED_S)
            n_accepted = sum(at_s >= since_s for at_s in sent) - sum(at_s >= since_s for at_s in refused)
            seconds = max(_LEAST_S, until_s - since_s)
            per_second = n_accepted / seconds if n_accepted > 0 else _UNKNOWN_PER_SECOND
            database.execute("DELETE FROM sent WHERE model = ? AND at > ? AND at < ?", (model, now_s, until_s))
            database.execute(_OPEN, (model, until_s, per_second))
            return True

    def _opened(self) -> AbstractContextManager[Database]:
        return opened_store(self.path, _SCHEMA)


def _ahead_s(database: Database) -> float:
    """Return by how much the clock of the store is ahead of this machine's, to a tenth: what asking takes is not it."""
    return round(database.now() - time.time(), 1)


def _breaker(database: Database, model: str, now_s: float) -> tuple[float, float]:
    """Return until when the model waits, and its requests a second from then on; zeros where nothing limits it."""
    row = database.execute("SELECT until, per_second FROM breakers WHERE model = ?", [model]).fetchone()
    return (0.0, 0.0) if row is None or now_s - row[0] > WINDOW_S else (row[0], row[1])
