"""Waiting for results that other processes compute, and saying for whom where that takes long."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from rag_lab.memory import Memory

_LOGGER = logging.getLogger(__name__)
_WAIT_S = 0.2
_TELL_AFTER_S = 10.0


class Waiting:
    """The waits of one stage or metric for keys that others have claimed."""

    def __init__(self, memory: Memory, waits: str) -> None:
        self._memory, self._waits = memory, waits
        self._waited_s, self._told = 0.0, ""

    def wait(self, keys: Sequence[str]) -> str:
        """Wait a moment; from ten seconds in all on, return ` waits for …`, which is also logged once."""
        time.sleep(_WAIT_S)
        self._waited_s += _WAIT_S
        if self._waited_s >= _TELL_AFTER_S and not self._told:
            self._told = f" waits for {', '.join(map(str, self._memory.holders(keys)))}"
            _LOGGER.warning("%s%s, which computes the same results.", self._waits, self._told)
        return self._told
