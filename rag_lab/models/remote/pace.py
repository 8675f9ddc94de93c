"""The pace of one remote model: requests of all processes, of all variants that run, wait in one line."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rag_lab._kit.home import home
from rag_lab.memory.paces import Paces, Rates

_LOG = logging.getLogger(__name__)
_TELL_AFTER_S = 10.0


@dataclass(frozen=True)
class Pace:
    """How fast a model is asked.

    Args:
        what: the model, in words.
        model: its identity as a text; those with the same one share their pace.
        rates: what its server takes in a minute.
        sleep: waits so many seconds.
    """

    what: str
    model: str
    rates: Rates
    sleep: Callable[[float], None] = time.sleep
    paces: Paces = field(default_factory=lambda: Paces(home() / "paces.sqlite"))

    def wait(self, tokens: int) -> None:
        """Return when a request of so many tokens may be sent."""
        at_s = self.paces.reserve(self.model, tokens, self.rates)
        now_s = self.paces.clock()
        while at_s > now_s:
            if at_s - now_s > _TELL_AFTER_S:
                _LOG.info("%s: waits %.0f s, as its server takes no more requests for now", self.what, at_s - now_s)
            self.sleep(at_s - now_s)
            now_s, at_s = at_s, self.paces.rests_until(self.model)

    def slow_down(self, wait_s: float) -> None:
        """Let nobody ask for so long, and fewer a minute from then on: the server was asked too often."""
        self.paces.refuse(self.model, wait_s)
