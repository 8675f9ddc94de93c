"""The machine: cores, disk, memory, energy; processes and the files that they own; calls that may hang or wait."""

import errno
import json
import math
import os
import re
import shutil
import signal
import socket
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from rag_lab.errors import RagLabError

Result = TypeVar("Result")

CGROUP = Path("/sys/fs/cgroup")  # control groups, version 2: the limits of a container
_STATUS = Path("/proc/self/status")
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
    """Return MiB in memory, of now (`VmRSS`) or the most since `begin_peak` (`VmHWM`); None where no Linux is."""
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
        Path("/proc/self/clear_refs").write_text("5")


def free_mb() -> float | None:
    """Return what programs can still take without swapping, or a container's limit leaves, in MiB; None without Linux.

    What files are cached in counts as free.
    """
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", _read(Path("/proc/meminfo")), re.MULTILINE)
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
    found = []
    for handle in handles:
        with suppress(Exception):  # older than Volta: it counts nothing
            pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
            name = str(pynvml.nvmlDeviceGetName(handle))
            found.append(
                Meter(name, partial(lambda one: pynvml.nvmlDeviceGetTotalEnergyConsumption(one) / 1e3, handle))
            )
    return (*found, *of_processors(POWERCAP))


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


OWNER_FILE = "owner.json"
_MAX_OWNER_BYTES = 4096
_PREFIX = "rag_lab_"  # of temporary folders
_HARMLESS = "tqdm_monitor"  # the thread of progress bars, which holds no lock that others need


def in_kernel() -> bool:
    """Return whether this process is a notebook's kernel, in which people read stdout and take stderr for a fault."""
    app = sys.modules.get("ipykernel.kernelapp")  # that it is imported says nothing: a sweep starts some
    return app is not None and app.IPKernelApp.initialized()


class Process(NamedTuple):
    """A process, named so that others find out whether it still runs: a number alone is soon in use again.

    The number means something within one start of a machine, and there within one container.
    """

    host: str
    system: str  # that start and that container; '' where the system does not say
    pid: int
    began: str  # when, by the clock of that start; '' where the system does not say

    @classmethod
    def of(cls, pid: int | None = None) -> "Process":
        """Return the process of this number, which runs here; the one that asks where None."""
        pid = os.getpid() if pid is None else pid
        return cls(*_host_and_system(), pid, _began(pid))

    def runs(self) -> bool | None:
        """Return whether it still runs; None where this process cannot know, as of another host or container."""
        if (self.host, self.system) != _host_and_system():
            return None
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass  # it is there, and another user's
        began = _began(self.pid)
        return began == self.began if began else None

    def is_stopped(self) -> bool:
        """Return whether it runs on this machine and is stopped, where the system says."""
        return (_stat(Path(f"/proc/{self.pid}/stat")) or ["?"])[0] in "Tt"

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@cache
def _host_and_system() -> tuple[str, str]:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return socket.gethostname(), f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return socket.gethostname(), ""


def _began(pid: int) -> str:
    """Return when a process began; 'ended' for one that only waits for its parent to notice, '' where none says.

    A process lives while any thread does: the first may end before the others, which hold files and sockets open.
    """
    fields = _stat(Path(f"/proc/{pid}/stat"))
    if not fields:
        return ""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir()) if fields[0] in "ZX" else []
    except OSError:  # it has gone since it was looked at
        threads = []
    lives = fields[0] not in "ZX" or any(each[0] not in "ZX" for one in threads if (each := _stat(one / "stat")))
    return fields[19] if lives else "ended"


def _stat(path: Path) -> list[str]:
    """Return the fields behind the name in a `stat` of the system; none where it has gone."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def owned_by_user(path: Path) -> bool:
    """Return whether this user owns what is at `path`, and the link to it where `path` is a link.

    On a machine with several users, what another one has put there is not obeyed.
    """
    try:
        return _is_users(path.lstat()) and _is_users(path.stat())
    except OSError:
        return False


def read_owned(path: Path, max_bytes: int) -> bytes:
    """Return what is in a file; it must be regular, this user's, and of at most `max_bytes`."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a FIFO would be waited for
    with os.fdopen(handle, "rb") as file:
        state = os.fstat(handle)
        content = file.read(max_bytes + 1) if stat.S_ISREG(state.st_mode) and _is_users(state) else None
    if content is None or len(content) > max_bytes or not owned_by_user(path):
        raise PermissionError(f"{path} is not a small file of this user")
    return content


def _is_users(state: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or state.st_uid == os.geteuid()


def scratch_folder(kind: str) -> tempfile.TemporaryDirectory[str]:
    """Return a new temporary folder, which only this user may enter; it is this process's as long as that runs."""
    remove_scratch()
    folder = tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{kind}_")
    write_owner(Path(folder.name))
    return folder


def write_owner(folder: Path) -> None:
    """Note in a folder that it is this process's."""
    (folder / OWNER_FILE).write_text(json.dumps(Process.of()), encoding="utf-8")


def owner_runs(folder: Path) -> bool | None:
    """Return whether the process whose folder it is still runs; None if nobody can know, or another user made it."""
    if not owned_by_user(folder):
        return None
    try:
        return Process(*json.loads(read_owned(folder / OWNER_FILE, _MAX_OWNER_BYTES))).runs()
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):
        return None


def remove_scratch() -> None:
    """Delete the temporary folders of this user's processes that have ended on this machine, as killed ones leave."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if owner_runs(folder) is False:
            shutil.rmtree(folder, ignore_errors=True)


class Hung(TimeoutError):  # noqa: N818
    """A call that did not return in time."""


def timed(call: Callable[[], Result], timeout_s: float) -> Result:
    """Return what `call` returns, or raise what it raises; `Hung` if it takes longer, in a thread that goes on."""
    returned: list[Result] = []
    raised: list[Exception] = []

    def work() -> None:
        try:
            returned.append(call())
        except Exception as error:
            raised.append(error)
        except BaseException as error:  # a call that exits must neither look like one that hangs nor exit
            raised.append(RuntimeError(repr(error)))

    thread = threading.Thread(target=copy_context().run, args=(work,), daemon=True)
    thread.start()
    thread.join(timeout_s)
    if raised:
        raise raised[0]
    if not returned:
        raise Hung(f"did not return within {timeout_s:g} s")
    return returned[0]


def may_be_forked() -> bool:
    """Return whether no other thread runs in this process, whose locks a fork would never see released."""
    others = [one for one in threading.enumerate() if one is not threading.current_thread()]
    return hasattr(os, "fork") and sys.platform != "darwin" and all(one.name == _HARMLESS for one in others)


@contextmanager
def in_background(work: Callable[[], Any]) -> Iterator[Callable[[], Any]]:
    """Yield a function that waits for the result of `work`, a JSON value, computed meanwhile in a forked process.

    It is computed when it is asked for, in this process, where there is no second core or this one may not be forked;
    and once more where it failed, to raise its error here.
    """
    if usable_cores() < 2 or not may_be_forked():
        yield work
        return
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            result = json.dumps(work())
            with os.fdopen(write, "w", encoding="utf-8") as pipe:
                pipe.write(result)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as pipe:
        try:
            yield lambda: json.loads(result) if (result := pipe.read()) else work()
        finally:
            os.kill(pid, signal.SIGKILL)  # it has ended, or nobody waits for it any more
            os.waitpid(pid, 0)
