"""The pace of one remote model: requests of all processes, of all variants that run, wait in one line."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from rag_lab._kit.home import home_at_work
from rag_lab.memory.paces import Paces, Rates

_LOG = logging.getLogger(__name__)
_TELL_AFTER_S = 10.0
_CLOCK_S = 0.1  # by which moments of the store may differ from one look at its clock to the next


@dataclass(frozen=True)
class Pace:
    """How fast a model is asked.

    Args:
        what: the model, in words.
        model: its identity as a text; those with the same one share their pace.
        rates: what its server takes in a minute.
        sleep: waits so many seconds.
        clock: seconds since 1970.
    """

    what: str
    model: str
    rates: Rates
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.time

    @cached_property
    def _paces(self) -> Paces:
        return Paces(home_at_work() / "paces.sqlite", self.clock)

    def wait(self, tokens: int) -> None:
        """Return when a request of so many tokens may be sent."""
        while True:
            at_s = self._paces.reserve(self.model, tokens, self.rates)
            wait_s = at_s - self.clock()
            if wait_s <= 0:
                return
            if wait_s > _TELL_AFTER_S:
                _LOG.info("%s: waits %.0f s, as its server takes no more requests for now", self.what, wait_s)
            self.sleep(wait_s)
            if self._paces.open_until(self.model) <= at_s + _CLOCK_S:
                return

    def refused(self, wait_s: float) -> None:
        """Wait for so long before a refused request is sent again; where the server is full, `wait` does so for all."""
        if not self._paces.refuse(self.model, wait_s):
            self.sleep(wait_s)
