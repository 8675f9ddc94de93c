"""Calls of remote models: bounded concurrency, and retries that are ours alone (the libraries' own are off)."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import TypeVar

from rag_lab.errors import ModelError
from rag_lab.memory.paces import Rates
from rag_lab.models.remote.failures import Failure, classify
from rag_lab.models.remote.pace import Pace
from rag_lab.models.remote.patience import Patience

_LOG = logging.getLogger(__name__)
_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 60.0  # a server that asks for more is given up for now

A = TypeVar("A")
B = TypeVar("B")


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
    rates: Rates = Rates()  # noqa: RUF009 (frozen)
    clock: Callable[[], float] = time.time

    def call(self, what: str, function: Callable[[], B], patience: Patience, tokens: int = 0) -> B:
        """Return what `function` returns, trying again after rate limits, server errors and time-outs.

        Waits double from one second, with jitter; `Retry-After` and Google's `retryDelay` are honoured. A model that
        is given up meanwhile is not tried again, and one that is given up already is not called. Before each attempt
        it waits for its turn among the requests of all processes, `tokens` being those read and written at the most.

        Raises:
            ModelError: if the key is rejected or the model unknown: no request can succeed.
            CallFailed: if this request fails otherwise.
        """
        attempt, pace = 0, Pace(what, patience.key, self.rates, self.sleep, self.clock)
        while not (given_up := patience.given_up()):
            attempt += 1
            pace.wait(tokens)
            try:
                result = function()
            except Exception as error:
                failure = classify(error)
            else:
                patience.answered()
                return result
            if failure.fatal:
                raise ModelError(f"{what}: {failure.sentence}.")
            wait_s = _wait_s(attempt, failure)
            if self._is_last(attempt, failure, wait_s, patience):
                tries = f" after {attempt} attempts" if attempt > 1 else ""
                raise CallFailed(f"{failure.sentence.rstrip('.')}{tries}", transient=failure.transient)
            _LOG.info("%s: %s; attempt %d in %.1f s", what, failure.sentence, attempt + 1, wait_s)
            if failure.too_many:
                pace.refused(wait_s)
            else:
                self.sleep(wait_s)
        raise CallFailed(given_up, transient=True, asked=attempt > 0)

    def _is_last(self, attempt: int, failure: Failure, wait_s: float, patience: Patience) -> bool:
        """Tell whether this attempt ends the call, and count it."""
        if not failure.transient:  # the model is there, and refuses this request alone
            patience.answered()
            return True
        last = attempt >= self.max_attempts or wait_s > _LONGEST_WAIT_S
        patience.failed(failure.sentence, calls=int(last), time_outs=int(failure.time_out))
        return last


def _wait_s(attempt: int, failure: Failure) -> float:
    jitter = 1 + random.random() / 4  # noqa: S311 (spreads retries; nothing secret)
    if failure.wait_s is not None:
        return failure.wait_s
    return min(_FIRST_WAIT_S * 2.0 ** (attempt - 1) * jitter, _LONGEST_WAIT_S)


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
