"""How many cores this process may use: a container, or who started it, may allow fewer than the machine has."""

from __future__ import annotations

import math
import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")  # control groups, version 2: `quota period`, in microseconds


def usable_cores() -> int:
    """Return the number of cores, at least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(allowed, _quota()))


def _quota() -> int:
    try:
        quota, period = _QUOTA.read_text(encoding="ascii").split()
        return math.ceil(int(quota) / int(period))
    except (OSError, ValueError):  # `max`: no limit
        return 1_000_000
