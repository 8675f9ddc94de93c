"""What work takes of the machine that it runs on: cores, disk, memory and energy, where they can be read."""

import errno
import math
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from rag_lab.errors import RagLabError

Result = TypeVar("Result")

CGROUP = Path("/sys/fs/cgroup")  # control groups, version 2: the limits of a container
_STATUS = Path("/proc/self/status")
_RESET_PEAK = Path("/proc/self/clear_refs")
_MEMINFO = Path("/proc/meminfo")
POWERCAP = Path("/sys/class/powercap")  # Linux; the packages are intel-rapl:0, intel-rapl:1, …, also of AMD
NO_METER = (
    "no energy meter could be read on this machine (an NVIDIA GPU with the extra rag_lab[energy], or RAPL below "
    "/sys/class/powercap, which on most systems only the administrator may read)"
)
_earlier_peak_mb = 0.0  # before the peak was last reset


def usable_cores() -> int:
    """Return how many cores this process may use: a container, or who started it, may allow fewer than there are."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # `max`: no limit
        quota, period = (CGROUP / "cpu.max").read_text(encoding="ascii").split()  # in microseconds
        allowed = min(allowed, math.ceil(int(quota) / int(period)))
    return max(1, allowed)


def bytes_on_disk(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder; 0 where nothing is there."""
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


@contextmanager
def room_on_disk(place: Path | None = None) -> Iterator[None]:
    """Raise a `RagLabError` where something in this block finds the disk full, mostly that of `place`."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        where = f" for {error.filename or place}" if error.filename or place else ""
        raise RagLabError(
            f"There is no room{where} ({error.strerror}); make room on that disk and start the same command again: it "
            "goes on."
        ) from error


def peak_memory_mb() -> int:
    """Return the peak in MiB. On Linux it is this program's own: `getrusage` counts the one that started it, too."""
    found = memory_mb("VmHWM")
    if found is not None:
        return int(max(found, _earlier_peak_mb))
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024**2 if sys.platform == "darwin" else 1024)


def memory_mb(key: Literal["VmRSS", "VmHWM"]) -> float | None:
    """Return what the process has in memory in MiB, mapped files that were read included; None where no Linux is.

    `VmRSS` is of now, `VmHWM` the peak since `begin_peak`.
    """
    found = re.search(rf"^{key}:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE) if _STATUS.exists() else None
    return int(found[1]) / 1024 if found else None


def peak_of(call: Callable[[], Result]) -> tuple[Result, int | None]:
    """Return what `call` returns, and the most that the process had in memory meanwhile, in MiB; None without Linux.

    It holds where nothing else runs in the process, and the call may look for peaks itself.
    """
    global _earlier_peak_mb
    begin_peak()
    before, _earlier_peak_mb = _earlier_peak_mb, 0.0
    result = call()
    now = memory_mb("VmHWM")
    peak = None if now is None else int(max(now, _earlier_peak_mb))
    _earlier_peak_mb = max(before, _earlier_peak_mb)
    return result, peak


def begin_peak() -> None:
    """Begin to look for a peak; that of the process as a whole stays known."""
    global _earlier_peak_mb
    _earlier_peak_mb = max(_earlier_peak_mb, memory_mb("VmHWM") or 0.0)
    with suppress(OSError):  # not Linux, or a container that forbids it: the peak stays the whole process's
        _RESET_PEAK.write_text("5")


def free_mb() -> float | None:
    """Return what programs can still take without swapping, in MiB; None where no Linux is.

    In a container it is what is left of its limit, where that is less. What files are cached in counts as free.
    """
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", _read(_MEMINFO), re.MULTILINE)
    if found is None:
        return None
    free = int(found[1]) / 1024
    limit, used = _read(CGROUP / "memory.max").strip(), _read(CGROUP / "memory.current").strip()
    if not limit.isdigit() or not used.isdigit():
        return free
    cached = re.search(r"^inactive_file (\d+)$", _read(CGROUP / "memory.stat"), re.MULTILINE)
    return min(free, (int(limit) - int(used) + (int(cached[1]) if cached else 0)) / 2**20)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""


@dataclass(frozen=True, slots=True)
class Meter:
    """A device's counter of joules, which begins anew at `wraps_j` (0: never)."""

    device: str
    read: Callable[[], float]
    wraps_j: float = 0.0


def energy_counter() -> Callable[[], float | None]:
    """Return a function that returns the joules of all devices since now; None where no meter can be read.

    A meter counts all that its device does, also for other programs: measure on a machine that does nothing else.
    """
    began = [(meter, meter.read()) for meter in meters()]

    def joules() -> float | None:
        spent = [(meter.read() - before, meter.wraps_j) for meter, before in began]
        return sum(one + wraps_j if one < 0 else one for one, wraps_j in spent) if spent else None

    return joules


@cache
def meters() -> tuple[Meter, ...]:
    """Return the meters that can be read here: NVIDIA's of each GPU, RAPL's of each processor."""
    try:
        import pynvml

        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(pynvml.nvmlDeviceGetCount())]
    except Exception:  # no package, no driver, no GPU: each of its own kind
        return of_processors(POWERCAP)
    return (*(meter for handle in handles for meter in _of_gpu(pynvml, handle)), *of_processors(POWERCAP))


def of_processors(folder: Path) -> tuple[Meter, ...]:
    """Return the readable RAPL counters of whole packages, whose parts (cores, memory) they include."""
    found = []
    for package in sorted(folder.glob("intel-rapl:*")):
        counter = package / "energy_uj"
        if package.name.count(":") > 1:  # a part of a package
            continue
        with suppress(OSError, ValueError):
            counter.read_text()
            wraps_j = int((package / "max_energy_range_uj").read_text()) / 1e6
            name = (package / "name").read_text().strip()
            found.append(Meter(name, lambda counter=counter: int(counter.read_text()) / 1e6, wraps_j))  # type: ignore[misc]
    return tuple(found)


def _of_gpu(pynvml: Any, handle: Any) -> tuple[Meter, ...]:
    def read() -> float:
        return float(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / 1e3

    with suppress(Exception):  # older than Volta: it counts nothing
        read()
        return (Meter(str(pynvml.nvmlDeviceGetName(handle)), read),)
    return ()
