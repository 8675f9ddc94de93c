"""The most memory that this process has held."""

from __future__ import annotations

import re
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")
_PEAK_KIB = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


def peak_memory_mb() -> int:
    """Return the peak in MiB. On Linux it is this program's own: `getrusage` counts the one that started it, too."""
    found = _PEAK_KIB.search(_STATUS.read_text()) if _STATUS.exists() else None
    return int(found[1]) // 1024 if found else _by_getrusage()


def _by_getrusage() -> int:
    import resource

    per_mib = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // per_mib
