"""The memory that this process holds, and the most that it has held."""

from __future__ import annotations

import re
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")
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
