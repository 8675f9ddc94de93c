"""The fork server of a sweep: a process with all imports done, which forks the processes of each job.

The sweep starts it as a `ForkServer`, and gets a `ForkedProcess` for each job, which has what it asks of a
`subprocess.Popen`. A command forks it from itself, so that what both need is imported once; elsewhere it is a new
process, `python -m rag_lab.experiment.kernels.fork_server FD`.

It takes jobs from the socket FD: for each the three streams that its process will have (see `notebook_process`), and
says its number, and later how it ended. It ends when the socket does, so with the sweep. It starts no thread and no
event loop, and touches no GPU, since a fork keeps neither.

What a notebook has imported of the heavy libraries and of this project, its successors find imported.
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

from rag_lab._kit.machine import Process, may_be_forked

CAN_FORK = hasattr(os, "fork") and hasattr(socket, "send_fds") and sys.platform != "darwin"
# What is worth importing for the successors. None of them starts a thread, and none reads at its import what only a
# kernel sets (matplotlib does).
_HEAVY = tuple(Path(__file__).with_name("heavy_imports.txt").read_text(encoding="utf-8").split())
_NEEDED = tuple(Path(__file__).with_name("needed_imports.txt").read_text(encoding="utf-8").split())
# What libraries look for, to check formats that no notebook has, to debug and to read notebooks from S3: importing them
# takes as long as all else does.
_UNUSED = tuple(Path(__file__).with_name("unused_imports.txt").read_text(encoding="utf-8").split())
_TEMPLATES = ("macros.html", "view.html", "trace.html")  # of what every variant shows
_AHEAD, _NUMBER_BYTES = b"a", 4  # the byte before a number of questions, which comes ahead of jobs
_LOOK_S = 0.01  # for processes that have ended
_POLL_S = 0.02
_START_S = 300.0  # within which a fork server has done its imports, also on a crowded machine
_STREAMS = 3
_PIECE = 4096  # bytes of a pipe that no other's come in between


class ForkServerGone(Exception):  # noqa: N818
    """The fork server has ended, or cannot be started."""


class ForkedProcess:
    """The process of one job."""

    def __init__(self, fork_server: "ForkServer", pid: int, stdin: IO[str], stdout: IO[str], stderr: IO[str]) -> None:
        self._fork_server, self.pid, self._process = fork_server, pid, Process.of(pid)
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return its exit status, or None while it runs; a fork server that is gone cannot tell how it ended."""
        ended = self._fork_server.ended
        try:
            self._fork_server.hear(blocking=False)
        except OSError:
            if not self._process.runs():
                ended.setdefault(self.pid, -signal.SIGKILL)
        self.returncode = ended.get(self.pid)
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Return its exit status when it has ended."""
        deadline_s = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > deadline_s:
                raise subprocess.TimeoutExpired("the process of a job", timeout)
            time.sleep(_POLL_S)
        return status

    def kill(self) -> None:
        """End it, and all that it has started, at once."""
        if self.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)


class _Fork:
    """A fork of this command that serves jobs as a new process would; it has what is asked of a `subprocess.Popen`."""

    def __init__(self, ours: socket.socket, wire: socket.socket, environment: Mapping[str, str]) -> None:
        self.pid = os.fork()
        if self.pid:
            return
        try:
            ours.close()  # else the end of the command would not be seen
            os.setsid()
            with Path(os.devnull).open("r+b", buffering=0) as null:
                for stream in range(_STREAMS):
                    os.dup2(null.fileno(), stream)
            sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
            os.environ.update(environment)
            if not sys.flags.safe_path:
                del sys.path[0]  # the folder of the command
            serve_jobs(wire)
        finally:
            os._exit(0)  # what the command does at its end is not done here

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float = _START_S) -> None:
        ends_s = time.monotonic() + timeout
        while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > ends_s:
                raise subprocess.TimeoutExpired("the fork server", timeout)
            time.sleep(_LOOK_S)


class ForkServer:
    """The fork server of one sweep, a new process or a fork of this one."""

    def __init__(self, environment: Mapping[str, str], *, from_here: bool = False) -> None:
        self._wire, theirs = socket.socketpair()
        with theirs:
            if from_here and may_be_forked():
                self._process: Any = _Fork(self._wire, theirs, environment)
            else:
                self._process = subprocess.Popen(  # noqa: S603 - ours
                    [sys.executable, "-P", "-m", "rag_lab.experiment.kernels.fork_server", str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=dict(environment),
                    start_new_session=True,
                )
        self.ended: dict[int, int] = {}  # by process its exit status
        self._rest = b""
        self._began: list[int] = []
        self._has_begun = False

    def start(self) -> ForkedProcess:
        """Return the process of a new job, which waits for its line on stdin; a ForkServerGone if nobody answers."""
        (stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr) = (os.pipe() for _ in range(_STREAMS))
        try:
            socket.send_fds(self._wire, [b"j"], [stdin, stdout, stderr])
            while not self._began:
                self.hear(blocking=True)
        except OSError as error:
            raise ForkServerGone(str(error)) from None
        finally:
            for theirs in (stdin, stdout, stderr):
                os.close(theirs)
        ours = ((to_stdin, "w"), (from_stdout, "r"), (from_stderr, "r"))
        streams = (os.fdopen(stream, mode, encoding="utf-8", errors="replace") for stream, mode in ours)
        return ForkedProcess(self, self._began.pop(0), *streams)

    def draw_ahead(self, questions: int) -> None:
        """Let it draw what intervals over so many questions need, for all jobs that come."""
        with suppress(OSError):  # that it is gone is told when a job is to start
            self._wire.settimeout(None)
            self._wire.sendall(_AHEAD + questions.to_bytes(_NUMBER_BYTES))

    def wait(self, seconds: float) -> None:
        """Wait for so long, or until it has something to say."""
        select.select([self._wire], [], [], seconds)

    def close(self) -> None:
        """End it; processes of jobs end with their own streams."""
        self._wire.close()
        if not self._has_begun:  # its imports are of no use any more
            self._process.kill()
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def hear(self, *, blocking: bool) -> None:
        """Take in which processes have begun and ended; an OSError if it has ended, or says nothing in time."""
        self._wire.settimeout(_START_S if blocking else 0)
        try:
            heard = self._wire.recv(65_536)
        except BlockingIOError:
            return
        if not heard:
            raise OSError("the fork server has ended")
        *lines, self._rest = (self._rest + heard).split(b"\n")
        for message in map(json.loads, lines):
            if "began" in message:
                self._began.append(message["began"])
                self._has_begun = True
            else:
                self.ended[message["ended"]] = message["status"]


def serve_jobs(wire: socket.socket) -> None:
    """Fork a process for each job that comes, until none can come."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()  # imports make very many objects, nearly all of which stay
    for name in _UNUSED:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]  # so that it cannot be imported
    for name in _NEEDED:
        importlib.import_module(name)
    for name in _UNUSED:
        if sys.modules[name] is None:
            del sys.modules[name]
    from nbformat.validator import get_validator

    from rag_lab.report.page.templates import environment
    from rag_lab.statistics.intervals import draw_ahead

    get_validator()  # compiled before it is needed, as the templates
    for name in _TEMPLATES:
        environment().get_template(name)
    gc.freeze()
    gc.enable()
    heard, tell = os.pipe()
    rest = b""
    children: set[int] = set()
    while True:
        ready, _, _ = select.select([wire.fileno(), heard], [], [], _LOOK_S if children else None)
        if wire.fileno() in ready:
            said, streams, _, _ = socket.recv_fds(wire, 1, _STREAMS)
            if not said:
                return
            if said == _AHEAD:
                draw_ahead(int.from_bytes(wire.recv(_NUMBER_BYTES, socket.MSG_WAITALL)))
                continue
            at_end = partial(_tell_imported, tell, frozenset(sys.modules))
            if (pid := os.fork()) == 0:
                from rag_lab.experiment.kernels.engine import end_after

                end_after(partial(_serve, streams, at_end, wire, heard))
            for stream in streams:
                os.close(stream)
            children.add(pid)
            wire.sendall(json.dumps({"began": pid}).encode() + b"\n")
        for pid in list(children):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                children.remove(pid)
                wire.sendall(json.dumps({"ended": pid, "status": os.waitstatus_to_exitcode(status)}).encode() + b"\n")
        if heard in ready:
            *lines, rest = (rest + os.read(heard, _PIECE)).split(b"\n")
            _import([line.decode() for line in lines])


def _import(names: Sequence[str]) -> None:
    for name in dict.fromkeys(names):
        if name not in sys.modules:
            with suppress(Exception):  # what it was imported for may be gone: it is the kernel's then
                importlib.import_module(name)
    gc.freeze()


def _tell_imported(tell: int, before: frozenset[str]) -> None:
    """Say which of the heavy libraries and of our own modules this kernel has imported, a line each."""
    for name in (new := [name for name in sys.modules if name not in before]):
        if name in _HEAVY or (name.startswith("rag_lab.") and "matplotlib" not in new):
            os.write(tell, f"{name}\n".encode())


def _serve(streams: Sequence[int], at_end: partial[None], wire: socket.socket, heard: int) -> int:
    """Do the job that comes through the streams, in a process that was forked for it."""
    from rag_lab.experiment.kernels import engine, notebook_process

    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    wire.close()
    os.close(heard)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    job = json.loads(sys.stdin.readline())
    os.environ.clear()
    os.environ.update(job.pop("environment"))
    engine.seed_anew()
    notebook_process.serve(job, engine.ForkedKernel(at_end))
    return 0


if __name__ == "__main__":
    serve_jobs(socket.socket(fileno=int(sys.argv[1])))
