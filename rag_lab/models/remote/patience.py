"""When a remote model is given up, so that a server that is down or silent cannot cost hours of retries and time-outs.

Failures in a row are counted here, beneath stages, metrics and the index alike. The kernels of a sweep share the counts
in the run's ledger, until its next start. Elsewhere this process counts, and asks again after a rest: who works by hand
mends the server and goes on.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rag_lab.memory.ledger import Failing, Ledger, environment_ledger

CALLS = 16  # that may fail in a row, each after all its attempts
TIME_OUTS = 8  # attempts in a row that may end by a time-out: those are dear
REST_S = 120.0


class Patience:
    """How often calls of one model failed in a row. Threads may share it.

    Args:
        identity: of the model; those with the same one share their counts in a ledger.
    """

    def __init__(self, identity: Mapping[str, Any]) -> None:
        self._name = _name(identity)
        self.key = json.dumps(dict(identity), sort_keys=True)
        self._here = Failing()
        self._failed_at = float("-inf")
        self._lock = threading.Lock()
        self._ledger, _ = environment_ledger()

    def given_up(self) -> str:
        """Return why the model is not called at present, or ''."""
        if self._ledger is None and time.monotonic() - self._failed_at > REST_S:
            return ""
        failing = self._ledger.failing().get(self.key, Failing()) if self._ledger else self._here
        again = "the same command goes on" if self._ledger else f"it is asked again {REST_S / 60:g} minutes later"
        found = _found(self._name, failing)
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


def given_up_models(ledger: Ledger) -> list[str]:
    """Return a sentence for each model that was given up in the present start of a sweep."""
    found = [_found(_name(json.loads(key)), failing) for key, failing in ledger.failing().items()]
    return [f"{sentence}." for sentence in found if sentence]


def _name(identity: Mapping[str, Any]) -> str:
    return f"{identity['provider']}:{identity['name']}"


def _found(name: str, failing: Failing) -> str:
    if failing.time_outs >= TIME_OUTS:
        count = f"{failing.time_outs} attempts in a row timed out"
    elif failing.calls >= CALLS:
        count = f"{failing.calls} calls in a row failed"
    else:
        return ""
    return f"{name} was given up for now: {count}, the last one because {failing.reason.rstrip('.')}"
