"""Who a process is, told so that others can find out whether it still runs: a number alone is soon in use again."""

from __future__ import annotations

import os
import socket
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple


def in_kernel() -> bool:
    """Return whether this process is a notebook's kernel, in which people read stdout and take stderr for a fault.

    That the kernels' library is imported says nothing: a sweep starts some.
    """
    app = sys.modules.get("ipykernel.kernelapp")
    return app is not None and app.IPKernelApp.initialized()


class Process(NamedTuple):
    """A process. Its number means something within one start of a machine, and there within one container."""

    host: str
    system: str  # that start and that container; '' where the system does not tell
    pid: int
    began: str  # when, by the clock of that start; '' where the system does not tell

    @classmethod
    def this(cls) -> Process:
        """Return the process that asks."""
        return cls.of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> Process:
        """Return the process of this number, which runs here."""
        return cls(*_place(), pid, _began(pid))

    def runs(self) -> bool | None:
        """Tell whether it still runs; None where this process cannot know, as of another host or container."""
        if (self.host, self.system) != _place():
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
        """Tell whether it runs on this machine and is stopped, where the system tells."""
        return (_told(Path(f"/proc/{self.pid}/stat")) or ["?"])[0] in "Tt"

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@cache
def _place() -> tuple[str, str]:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return socket.gethostname(), f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return socket.gethostname(), ""


def _began(pid: int) -> str:
    """Return when a process began; 'ended' for one that only waits for its parent to notice, '' where none tells."""
    fields = _told(Path(f"/proc/{pid}/stat"))
    if not fields:
        return ""
    return "ended" if _is_dead(fields) and not _a_thread_lives(pid) else fields[19]


def _a_thread_lives(pid: int) -> bool:
    """Tell whether a thread is left: the first may end before the others, which hold files and sockets open."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:  # it has gone since it was looked at
        return False
    looks = (_told(thread / "stat") for thread in threads)
    return any(fields and not _is_dead(fields) for fields in looks)


def _told(path: Path) -> list[str]:
    """Return what stands behind the name in a `stat` of the system; nothing where it has gone."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _is_dead(fields: list[str]) -> bool:
    return fields[0] in "ZX"
