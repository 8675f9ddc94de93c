"""The memory that this process holds, the most that it has held, and what the machine has left."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")
_MEMINFO = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")
_FORGET_PEAK = "5"  # Linux: the peak begins anew at what is held now
_highest_mb = 0.0  # before the peak was last forgotten


def peak_memory_mb() -> int:
    """Return the peak in MiB. On Linux it is this program's own: `getrusage` counts the one that started it, too."""
    found = _status("VmHWM")
    return _by_getrusage() if found is None else int(max(found, _highest_mb))


def held_mb() -> float | None:
    """Return what the process holds now in MiB, mapped files that were read included; None where no Linux tells."""
    return _status("VmRSS")


def peak_since_mb() -> float | None:
    """Return the peak in MiB since `begin_peak`; None where no Linux tells."""
    return _status("VmHWM")


def peak_of(call: Callable[[], Result]) -> tuple[Result, int | None]:
    """Return what `call` returns, and the most that the process held meanwhile, in MiB; None where no Linux tells.

    It holds where nothing else runs in the process, and the call may look for peaks itself.
    """
    global _highest_mb
    begin_peak()
    before, _highest_mb = _highest_mb, 0.0
    result = call()
    now = _status("VmHWM")
    peak = None if now is None else int(max(now, _highest_mb))
    _highest_mb = max(before, _highest_mb)
    return result, peak


def free_mb() -> float | None:
    """Return what programs can still take without swapping, in MiB; None where no Linux tells.

    In a container it is what is left of its limit, where that is less. What files are cached in counts as free.
    """
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", _read(_MEMINFO), re.MULTILINE)
    if found is None:
        return None
    left = _left_of_limit()
    machine = int(found[1]) / 1024
    return machine if left is None else min(machine, left)


def _left_of_limit() -> float | None:
    """Return what is left of a container's limit (control groups, version 2); None where there is none."""
    limit, used = _read(_GROUP / "memory.max").strip(), _read(_GROUP / "memory.current").strip()
    if not limit.isdigit() or not used.isdigit():
        return None
    cached = re.search(r"^inactive_file (\d+)$", _read(_GROUP / "memory.stat"), re.MULTILINE)
    return (int(limit) - int(used) + (int(cached[1]) if cached else 0)) / 2**20


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""


def begin_peak() -> None:
    """Begin to look for a peak; that of the process as a whole stays known."""
    global _highest_mb
    _highest_mb = max(_highest_mb, _status("VmHWM") or 0.0)
    try:
        _RESET.write_text(_FORGET_PEAK)
    except OSError:  # not Linux, or a container that forbids it: the peak stays the whole process's
        return


def _status(key: str) -> float | None:
    if not _STATUS.exists():
        return None
    found = re.search(rf"^{key}:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    return int(found[1]) / 1024 if found else None


def _by_getrusage() -> int:
    import resource

    per_mib = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // per_mib
