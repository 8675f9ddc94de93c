"""Seconds of the clock and of the processor that a command takes, with all processes that it leaves behind."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of Linux: orphans of a command become children of this process, and count
_LEFT_S = 10.0  # for which processes that outlive their command are waited for


@dataclass(frozen=True)
class Took:
    """Wall seconds, and processor seconds of all processes."""

    wall_s: float
    cpu_s: float

    def __add__(self, other: Took) -> Took:
        return Took(self.wall_s + other.wall_s, self.cpu_s + other.cpu_s)

    def __mul__(self, n: float) -> Took:
        return Took(self.wall_s * n, self.cpu_s * n)

    def __truediv__(self, n: float) -> Took:
        return Took(self.wall_s / n, self.cpu_s / n)

    def over(self, other: Took, digits: int = 2) -> dict[str, float]:
        """Return how many times as long as the other it took, by clock and by processor."""
        return {"wall": round(self.wall_s / other.wall_s, digits), "cpu": round(self.cpu_s / other.cpu_s, digits)}

    def told(self, digits: int = 1) -> dict[str, float]:
        return {"wall_s": round(self.wall_s, digits), "cpu_s": round(self.cpu_s, digits)}


def mean(times: Sequence[Took]) -> Took:
    return sum(times, Took(0.0, 0.0)) / len(times)


def ran(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None, allowed: Sequence[int] = (0,)
) -> tuple[Took, str]:
    """Run a command and return what it took, which stderr tells at once, and what it printed.

    One that fails ends the benchmark with its words.
    """
    _adopt_orphans()
    before, began_s = _children_s(), time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **(environment or {})}, capture_output=True, encoding="utf-8"
    )
    wall_s = time.perf_counter() - began_s
    if done.returncode not in allowed:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    _wait_for_orphans()
    took = Took(wall_s, _children_s() - before)
    print(f"{took.wall_s:.1f} s, processor {took.cpu_s:.1f} s: {' '.join(command)[-60:]!r}", file=sys.stderr)
    return took, done.stdout


def _adopt_orphans() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def _wait_for_orphans() -> None:
    ends_s = time.monotonic() + _LEFT_S
    with suppress(ChildProcessError):
        while time.monotonic() < ends_s:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.02)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
