"""Calls of remote models: a rate limiter, a circuit breaker, retries that are ours alone, bounded concurrency.

A request reserves the next moment at which it keeps the limits, and is sent then: requests of all processes to one
model wait in one line. A single refusal stops only the request that was refused. Where a server refuses more than a
quarter of what it was sent last, it is full: all requests wait, then go on at the rate that it accepted, which doubles
every few seconds.

Failures in a row are counted beneath stages, metrics and the index alike, so that a server that is down cannot cost
hours. The kernels of a sweep share the counts in the run's ledger, until its next start. By hand this process counts,
and asks again after a rest: who mends the server goes on.
"""

import json
import logging
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from rag_lab._kit.home import home_at_work
from rag_lab.errors import ModelError
from rag_lab.memory.ledger import Failing, Ledger, environment_ledger
from rag_lab.memory.open_store import Database, is_there, opened_store
from rag_lab.models.remote.http import classify

_LOG = logging.getLogger(__name__)
_TELL_AFTER_S = 10.0
_CLOCK_S = 0.1  # by which moments of the store may differ from one look at its clock to the next
CALLS = 16  # that may fail in a row, each after all its attempts
TIME_OUTS = 8  # attempts in a row that may end by a time-out: those are dear
REST_S = 120.0
_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 60.0  # a server that asks for more is given up for now
A = TypeVar("A")
B = TypeVar("B")


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

    It is not before the last of `sent`, in order; one of more tokens waits for a minute of its own (sliding window
    log).
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
    """The paces of all models, in the file at `path`, by the clock of the store; threads may share it."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self.clock = clock

    def reserve(self, model: str, tokens: int, rates: Rates) -> float:
        """Return when a request may be sent, in seconds of the clock; it is counted as sent then."""
        with opened_store(self.path, _SCHEMA) as database, database:
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
        with opened_store(self.path, _SCHEMA) as database:
            ahead_s = _ahead_s(database)
            return _breaker(database, model, self.clock() + ahead_s)[0] - ahead_s

    def refuse(self, model: str, wait_s: float) -> bool:
        """Note that too many requests were sent; return whether the server is full: then all wait `wait_s` seconds."""
        with opened_store(self.path, _SCHEMA) as database, database:
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


def _ahead_s(database: Database) -> float:
    """Return by how much the clock of the store is ahead of this machine's, to a tenth: what asking takes is not it."""
    return round(database.now() - time.time(), 1)


def _breaker(database: Database, model: str, now_s: float) -> tuple[float, float]:
    """Return until when the model waits, and its requests a second from then on; zeros where nothing limits it."""
    row = database.execute("SELECT until, per_second FROM breakers WHERE model = ?", [model]).fetchone()
    return (0.0, 0.0) if row is None or now_s - row[0] > WINDOW_S else (row[0], row[1])


class CircuitBreaker:
    """How often calls of one model failed in a row; models of one identity share their counts in a ledger."""

    def __init__(self, identity: Mapping[str, Any]) -> None:
        self.key = json.dumps(dict(identity), sort_keys=True)
        self._here = Failing()
        self._failed_at = float("-inf")
        self._lock = threading.Lock()
        self._ledger, _ = environment_ledger()

    def why_open(self) -> str:
        """Return why the model is not called at present, or ''."""
        if self._ledger is None and time.monotonic() - self._failed_at > REST_S:
            return ""
        failing = self._ledger.failing().get(self.key, Failing()) if self._ledger else self._here
        again = "the same command goes on" if self._ledger else f"it is asked again {REST_S / 60:g} minutes later"
        found = _open_sentence(self.key, failing)
        return f"{found}; {again}" if found else ""

    def answered(self) -> None:
        """Count from zero again."""
        if self._ledger:
            self._ledger.answered(self.key)
        self._here = Failing()

    def failed(self, reason: str, *, calls: int = 0, time_outs: int = 0) -> None:
        """Count failed calls, or attempts that timed out, and keep the reason of the last one."""
        if not calls and not time_outs:
            return
        more = Failing(calls, time_outs, reason)
        if self._ledger:
            self._ledger.failed(self.key, more)
            return
        with self._lock:
            known, self._failed_at = self._here, time.monotonic()
            self._here = replace(more, calls=known.calls + calls, time_outs=known.time_outs + time_outs)


def open_breaker_sentences(ledger: Ledger) -> list[str]:
    """Return a sentence for each model that was given up in the present start of a sweep."""
    found = [_open_sentence(key, failing) for key, failing in ledger.failing().items()]
    return [f"{sentence}." for sentence in found if sentence]


def _open_sentence(key: str, failing: Failing) -> str:
    if failing.time_outs >= TIME_OUTS:
        count = f"{failing.time_outs} attempts in a row timed out"
    elif failing.calls >= CALLS:
        count = f"{failing.calls} calls in a row failed"
    else:
        return ""
    model = json.loads(key)
    reason = failing.reason.rstrip(".")
    return f"{model['provider']}:{model['name']} was given up for now: {count}, the last one because {reason}"


class CallFailed(Exception):  # noqa: N818
    """One request failed for good, or for as often as it was tried; `asked` is False where it was never sent."""

    def __init__(self, reason: str, *, transient: bool, asked: bool = True) -> None:
        self.transient = transient
        self.asked = asked
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often to try, and how to wait between attempts."""

    max_attempts: int = 5
    sleep: Callable[[float], None] = time.sleep
    rates: Rates = Rates()
    clock: Callable[[], float] = time.time

    def wait(self, what: str, model: str, tokens: int) -> RateLimitStore:
        """Wait until a request of so many tokens to the `model` (its identity) may be sent; return the store."""
        store = RateLimitStore(home_at_work() / "paces.sqlite", self.clock)
        while True:
            at_s = store.reserve(model, tokens, self.rates)
            wait_s = at_s - self.clock()
            if wait_s > _TELL_AFTER_S:
                _LOG.info("%s: waits %.0f s, as its server takes no more requests for now", what, wait_s)
            if wait_s > 0:
                self.sleep(wait_s)
            if wait_s <= 0 or store.open_until(model) <= at_s + _CLOCK_S:
                return store

    def call(self, what: str, function: Callable[[], B], breaker: CircuitBreaker, tokens: int = 0) -> B:
        """Return what `function` returns, trying again after rate limits, server errors and time-outs.

        Waits double from one second, with jitter; `Retry-After` and Google's `retryDelay` are honoured. Each attempt
        waits for its turn among the requests of all processes, `tokens` being those read and written at the most. A
        model that is given up is not called. Raises `ModelError` where no request can succeed, `CallFailed` where this
        one fails otherwise.
        """
        attempt = 0
        while not (why := breaker.why_open()):
            attempt += 1
            store = self.wait(what, breaker.key, tokens)
            try:
                result = function()
            except Exception as error:
                failure = classify(error)
            else:
                breaker.answered()
                return result
            if failure.fatal:
                raise ModelError(f"{what}: {failure.sentence}.")
            wait_s = failure.wait_s
            if wait_s is None:
                jitter = 1 + random.random() / 4  # noqa: S311 (spreads retries; nothing secret)
                wait_s = min(_FIRST_WAIT_S * 2.0 ** (attempt - 1) * jitter, _LONGEST_WAIT_S)
            is_last = not failure.transient or attempt >= self.max_attempts or wait_s > _LONGEST_WAIT_S
            if failure.transient:
                breaker.failed(failure.sentence, calls=int(is_last), time_outs=int(failure.time_out))
            else:  # the model is there, and refuses this request alone
                breaker.answered()
            if is_last:
                tries = f" after {attempt} attempts" if attempt > 1 else ""
                raise CallFailed(f"{failure.sentence.rstrip('.')}{tries}", transient=failure.transient)
            _LOG.info("%s: %s; attempt %d in %.1f s", what, failure.sentence, attempt + 1, wait_s)
            if not (failure.too_many and store.refuse(breaker.key, wait_s)):  # a server that is full, rests for all
                self.sleep(wait_s)
        raise CallFailed(why, transient=True, asked=attempt > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteOptions:
    """How a model behind a server is asked; `providers` says which of these a name may set."""

    base_url: str = ""  # '' for the address that the provider is known by
    concurrency: int = 4  # calls at a time
    max_attempts: int = 5  # of one call
    timeout_s: float = 120.0  # of one attempt; the first one may load the weights
    requests_per_minute: int | None = None  # that the server takes of all processes together, where that is known
    tokens_per_minute: int | None = None  # that it takes, likewise
    batch_size: int = 32  # texts or passages in one call
    context: int | None = None  # tokens that the model reads (and writes, of a chat model)
    max_tokens: int | None = None  # of a pair, or of Cohere's passages, that are read
    dimensions: int | None = None  # of a vector, where the model can choose
    document_prefix: str = ""  # what the model wants before a passage, such as `search_document: `
    query_prefix: str = ""  # what it wants before a question
    keep_alive: str = ""  # how long Ollama keeps the weights loaded after a call, such as `10m`, or `-1` for ever
    answers_as: str = ""  # the name by which the server answers, where it is another


class RemoteModel:
    """A model behind a server: its name, its options, its client, and how its calls are retried."""

    provider: str
    kind = ""  # of model, for the circuit breaker; '' is a chat model
    priced = True  # calls cost money: not those of a server of the user's
    _client: Any  # what sends a call, made on first use; a missing key or package is a `ModelError`
    defaults = RemoteOptions()

    def __init__(self, name: str, **options: Any) -> None:
        self.name = name
        self.options = replace(self.defaults, **options)
        self.concurrency = self.options.concurrency
        rates = Rates(self.options.requests_per_minute, self.options.tokens_per_minute)
        self.retry = RetryPolicy(self.options.max_attempts, rates=rates)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def identity(self) -> Mapping[str, Any]:
        """Return provider and name, and what else changes its output; never the key."""
        return {"provider": self.provider, "name": self.name}

    @cached_property
    def _breaker(self) -> CircuitBreaker:
        return CircuitBreaker({**self.identity(), **({"kind": self.kind} if self.kind else {})})

    def _call_all(self, call: Callable[[A], B], items: Sequence[A], tokens: Callable[[A], int]) -> list[B]:
        """Return what `call` returns for each item, in order; each is retried, `tokens` are the most it may read."""
        what, breaker = repr(self), self._breaker
        try:
            return in_parallel(
                lambda item: self.retry.call(what, lambda: call(item), breaker, tokens(item)), items, self.concurrency
            )
        except CallFailed as error:
            raise ModelError(f"{self!r}: {error}; try again later.") from None


def in_parallel(function: Callable[[A], B], items: Sequence[A], concurrency: int) -> list[B]:
    """Return `function` of each item, in order, at most `concurrency` at a time. An exception stops the rest."""
    if len(items) < 2 or concurrency < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(min(concurrency, len(items))) as pool:
        futures = [pool.submit(copy_context().run, function, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
