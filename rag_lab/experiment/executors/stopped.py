"""Processes of jobs that somebody has stopped (SIGSTOP, a debugger), which would never end: the sweep ends them."""

from __future__ import annotations

import time
from collections import Counter

from rag_lab._kit.process import Process

STOPPED_S = 120.0  # after which a stopped process is ended, as a kernel that does not answer
_LOOK_EVERY_S = 1.0


class StoppedProcesses:
    """How long each has been stopped, counted in looks: no time counts in which this process was stopped, too."""

    def __init__(self) -> None:
        self._looks = Counter[int]()
        self._looked_s: dict[int, float] = {}

    def reason(self, pid: int) -> str:
        """Return why a process must be ended, or ''."""
        now_s = time.monotonic()
        if now_s - self._looked_s.get(pid, 0.0) >= _LOOK_EVERY_S:
            self._looked_s[pid] = now_s
            self._looks[pid] = self._looks[pid] + 1 if Process.of(pid).is_stopped() else 0
        if self._looks[pid] < STOPPED_S / _LOOK_EVERY_S:
            return ""
        return (
            f"The notebook's process was stopped for {STOPPED_S:g} seconds and was ended; start the same command again."
        )
