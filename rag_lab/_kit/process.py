"""Who runs, whose a file is, calls that may hang, work in the background, temporary folders that know their owner."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from rag_lab._kit.machine import usable_cores

T = TypeVar("T")

OWNER_FILE = "owner.json"
_MAX_OWNER_BYTES = 4096
_PREFIX = "rag_lab_"  # of temporary folders
_HARMLESS = "tqdm_monitor"  # the thread of progress bars, which holds no lock that others need


def in_kernel() -> bool:
    """Return whether this process is a notebook's kernel, in which people read stdout and take stderr for a fault.

    That the kernels' library is imported says nothing: a sweep starts some.
    """
    app = sys.modules.get("ipykernel.kernelapp")
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
    def this(cls) -> Process:
        """Return the process that asks."""
        return cls.of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> Process:
        """Return the process of this number, which runs here."""
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
    (folder / OWNER_FILE).write_text(json.dumps(Process.this()), encoding="utf-8")


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


def timed(call: Callable[[], T], timeout_s: float) -> T:
    """Return what `call` returns, or raise what it raises.

    Raises:
        Hung: if it does not return in time; it goes on in its thread, which holds up no exit.
    """
    returned: list[T] = []
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


@contextmanager
def in_background(work: Callable[[], Any]) -> Iterator[Callable[[], Any]]:
    """Yield a function that waits for the result of `work`, a JSON value, computed meanwhile in a forked process.

    It is computed when it is asked for, in this process, where there is no second core or no fork, or where other
    threads run, whose locks a fork would never see released; and once more where it failed, to raise its error here.
    """
    others = [one for one in threading.enumerate() if one is not threading.current_thread()]
    can_fork = hasattr(os, "fork") and sys.platform != "darwin" and all(one.name == _HARMLESS for one in others)
    if usable_cores() < 2 or not can_fork:
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
