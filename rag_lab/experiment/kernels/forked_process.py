"""The fork server and its processes as the sweep sees them: they have what it asks of a `subprocess.Popen`."""

from __future__ import annotations

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
from typing import IO

from rag_lab._kit.machine import Process

AHEAD = b"a"  # the byte before what a fork server is told ahead of jobs
_LOOK_S = 0.02
_START_S = 300.0  # within which a fork server has done its imports, also on a crowded machine


class ForkServerGone(Exception):  # noqa: N818
    """The fork server has ended, or cannot be started."""


class ForkedProcess:
    """The process of one job."""

    def __init__(self, fork_server: ForkServer, pid: int, stdin: IO[str], stdout: IO[str], stderr: IO[str]) -> None:
        self._fork_server, self.pid, self._process = fork_server, pid, Process.of(pid)
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr

    @property
    def returncode(self) -> int | None:
        """Its exit status, None while it runs."""
        return self._fork_server.status(self._process)

    def poll(self) -> int | None:
        """Return its exit status, or None while it runs."""
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Return its exit status when it has ended."""
        deadline_s = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > deadline_s:
                raise subprocess.TimeoutExpired("the process of a job", timeout)
            time.sleep(_LOOK_S)
        return status

    def kill(self) -> None:
        """End it, and all that it has started, at once."""
        if self.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)


class ForkServer:
    """The fork server of one sweep; it starts with the first job, whose imports it does."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - ours
                [sys.executable, "-P", "-m", "rag_lab.experiment.kernels.fork_server", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=dict(environment),
                start_new_session=True,
            )
        self._wire = ours
        self._rest = b""
        self._ended: dict[int, int] = {}
        self._began: list[int] = []
        self._has_begun = False

    @staticmethod
    def is_possible() -> bool:
        """Whether processes can be forked here."""
        return hasattr(os, "fork") and hasattr(socket, "send_fds") and sys.platform != "darwin"

    def start(self) -> ForkedProcess:
        """Return the process of a new job, which waits for the job's line on its stdin.

        Raises:
            ForkServerGone: if there is no fork server any more, or it does not answer.
        """
        pipes = [os.pipe() for _ in range(3)]
        (stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr) = pipes
        try:
            socket.send_fds(self._wire, [b"j"], [stdin, stdout, stderr])
            while not self._began:
                self._hear(blocking=True)
        except OSError as error:
            raise ForkServerGone(str(error)) from None
        finally:
            for theirs in (stdin, stdout, stderr):
                os.close(theirs)
        streams = (
            os.fdopen(to_stdin, "w", encoding="utf-8", errors="replace"),
            os.fdopen(from_stdout, encoding="utf-8", errors="replace"),
            os.fdopen(from_stderr, encoding="utf-8", errors="replace"),
        )
        return ForkedProcess(self, self._began.pop(0), *streams)

    def status(self, process: Process) -> int | None:
        """Return how a process of it has ended, None while it runs; a fork server that is gone cannot tell how."""
        try:
            self._hear(blocking=False)
        except OSError:
            if not process.runs():
                self._ended.setdefault(process.pid, -signal.SIGKILL)
        return self._ended.get(process.pid)

    def preload(self, modules: Sequence[str], questions: int) -> None:
        """Let it import modules, and draw what intervals over so many questions need, for all jobs that come."""
        told = json.dumps({"modules": list(modules), "questions": questions})
        with suppress(OSError):  # that it is gone is told when a job is to start
            self._wire.settimeout(None)
            self._wire.sendall(AHEAD + told.encode() + b"\n")

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

    def _hear(self, *, blocking: bool) -> None:
        self._wire.settimeout(_START_S if blocking else 0)
        try:
            heard = self._wire.recv(65_536)
        except BlockingIOError:
            return
        if not heard:
            raise OSError("the fork server has ended")
        *lines, self._rest = (self._rest + heard).split(b"\n")
        for line in lines:
            told = json.loads(line)
            if "began" in told:
                self._began.append(told["began"])
                self._has_begun = True
            else:
                self._ended[told["ended"]] = told["status"]
