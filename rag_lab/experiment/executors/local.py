"""The executor of this machine: notebooks by papermill, several at a time, each in processes of its own."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from rag_lab._kit.home import home
from rag_lab._kit.machine import Process, remove_scratch
from rag_lab.experiment.executors.job import Done, Job, Poll, Veto, check_parameters
from rag_lab.experiment.kernels.forked_process import ForkedProcess, ForkServer, ForkServerGone
from rag_lab.redaction import shown

_LOGGER = logging.getLogger(__name__)
_POLL_S = 0.05
_STOP_S = 5.0
STOPPED_S = 120.0  # after which a stopped process is ended, as a kernel that does not answer
_STOPPED_LOOK_S = 1.0
_MOST_GONE = 3  # fork servers in a row, after which there is no other
_waiting: list[Starter] = []  # what was prepared before its jobs were known


@dataclass(frozen=True, slots=True)
class _Running:
    job: Job
    process: subprocess.Popen[str] | ForkedProcess
    log: threading.Thread
    started: float


def execute(
    jobs: Sequence[Job],
    n_jobs: int = 1,
    *,
    cwd: Path | None = None,
    poll: Poll = lambda running: None,
    veto: Veto = lambda job, runs: "",
    starter: Starter | None = None,
) -> Iterator[Done]:
    """Yield each job as it ends; see `Execute`. A `starter` that is given is kept for jobs to come."""
    for job in jobs:
        check_parameters(job.notebook, job.parameters)
    waiting, running = deque(jobs), deque[_Running]()
    looks: dict[int, tuple[float, int]] = {}
    start = starter or (_waiting.pop() if _waiting else Starter())
    try:
        while waiting or running:
            while waiting and len(running) < n_jobs:
                job = waiting.popleft()
                if reason := veto(job, False):
                    yield Done(job, reason, 0.0, vetoed=True)
                else:
                    running.append(start(job, cwd or Path.cwd()))
            start.wait(_POLL_S)
            poll([one.job.name for one in running])
            for one in list(running):
                if (done := _ended(one, veto, looks)) is not None:
                    running.remove(one)
                    yield done
    finally:
        for one in running:
            _stop(one.process)
        for one in running:
            one.log.join(_STOP_S)  # which lasts as long as its kernel
        if running:
            remove_scratch()  # what was stopped could not delete its temporary folders
        if starter is None:
            start.close()


def _ended(one: _Running, veto: Veto, looks: dict[int, tuple[float, int]]) -> Done | None:
    """Return how a job ended, ending it where it is vetoed or was stopped (SIGSTOP, a debugger); None while it runs.

    `looks` has by process when it was last looked at, and in how many looks it was stopped: no time counts in which
    this process was stopped, too.
    """
    if one.process.poll() is not None:
        reply = _pipe(one.process.stdout).read().strip()
        _close(one.process)
        one.log.join(_STOP_S)
        try:
            reason = str(json.loads(reply)["reason"])
        except (ValueError, KeyError):
            reason = f"The notebook's process ended with status {one.process.returncode}; see {one.job.log}."
        return Done(one.job, reason, time.monotonic() - one.started)
    looked_s, n_stopped = looks.get(one.process.pid, (0.0, 0))
    if time.monotonic() - looked_s >= _STOPPED_LOOK_S:
        n_stopped = n_stopped + 1 if Process.of(one.process.pid).is_stopped() else 0
        looks[one.process.pid] = (time.monotonic(), n_stopped)
    if n_stopped >= STOPPED_S / _STOPPED_LOOK_S:
        reason = (
            f"The notebook's process was stopped for {STOPPED_S:g} seconds and was ended; start the same command again."
        )
        one.process.kill()
        _stop(one.process)
        return Done(one.job, reason, time.monotonic() - one.started)
    if reason := veto(one.job, True):
        _stop(one.process)
        return Done(one.job, reason, time.monotonic() - one.started, vetoed=True)
    return None


@contextmanager
def prepared() -> Iterator[Starter]:
    """Prepare processes from now on, for the `execute` that comes in this block; what already does so is enough."""
    if _waiting:
        yield _waiting[0]
        return
    starter = Starter()
    starter.prepare()
    _waiting.append(starter)
    try:
        yield starter
    finally:
        if starter in _waiting:
            _waiting.remove(starter)
        starter.close()


class Starter:
    """Starts the processes of jobs: prepared ones where they can be had, and are wanted."""

    def __init__(self) -> None:
        self._fork_server: ForkServer | None = None
        self._can_fork = ForkServer.is_possible()
        self._n_gone = 0

    def __call__(self, job: Job, cwd: Path) -> _Running:
        """Start a job."""
        job.output.parent.mkdir(parents=True, exist_ok=True)
        environment = {**_environment(), **job.environment}
        process: subprocess.Popen[str] | ForkedProcess | None = None if job.cold else self._prepared()
        if process is None:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "rag_lab.experiment.kernels.notebook_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                env=environment,
                start_new_session=True,  # Ctrl-C reaches this process only, which then ends the others in order
            )
        log_file = job.log.open("w", encoding="utf-8")
        log = threading.Thread(target=_keep_log, args=(process.stderr, log_file), daemon=True)
        log.start()
        task = {
            "notebook": str(job.notebook.resolve()),
            "output": str(job.output.resolve()),
            "parameters": dict(job.parameters),
            "cwd": str(cwd),
            "cell_minutes": job.cell_minutes,
            "environment": environment,
        }
        _pipe(process.stdin).write(json.dumps(task) + "\n")
        _pipe(process.stdin).flush()
        return _Running(job, process, log, time.monotonic())

    def wait(self, seconds: float) -> None:
        """Wait for so long, or until a prepared process has ended."""
        if self._fork_server is not None:
            self._fork_server.wait(seconds)
        else:
            time.sleep(seconds)

    def prepare(self) -> None:
        """Start what prepares processes, where that is possible here."""
        if self._fork_server is None and self._can_fork:
            self._fork_server = ForkServer(_environment())

    def preload(self, modules: Sequence[str], questions: int) -> None:
        """Let what is prepared import modules, and draw for intervals over so many questions, before jobs come."""
        if self._fork_server is not None:
            self._fork_server.preload(modules, questions)

    def close(self) -> None:
        """End what prepares processes."""
        if self._fork_server is not None:
            self._fork_server.close()
            self._fork_server = None

    def _prepared(self) -> ForkedProcess | None:
        """Return a forked process; another fork server takes the place of one that is gone, unless too many have."""
        while self._can_fork:
            try:
                self.prepare()
                process = self._fork_server.start() if self._fork_server is not None else None
            except (ForkServerGone, OSError) as error:
                self.close()
                self._n_gone += 1
                self._can_fork = self._n_gone < _MOST_GONE
                if not self._can_fork:
                    how = "each is started anew, which takes longer."
                    _LOGGER.warning("Kernels are no longer prepared (%s); %s", error, how)
            else:
                self._n_gone = 0
                return process
        return None


def _keep_log(said: TextIO, log: TextIO) -> None:
    """Write what a job's processes print, as it may be shown, until the last of them has ended."""
    with suppress(OSError), said, log:
        for line in said:
            with suppress(OSError):  # a full disk is told by what is worth more; who prints must not wait
                log.write(shown(line))
                log.flush()


def _environment() -> dict[str, str]:
    """Return this process's environment with one home for all, and a quiet kernel."""
    return {
        **os.environ,
        "RAG_LAB_HOME": str(home()),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


def _stop(process: subprocess.Popen[str] | ForkedProcess) -> None:
    _close(process)
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(_STOP_S)


def _close(process: subprocess.Popen[str] | ForkedProcess) -> None:
    """Close the pipes; a worker whose stdin ends, ends."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None and not pipe.closed:
            pipe.close()


def _pipe(stream: Any) -> Any:
    if stream is None:
        raise RuntimeError("the process was started without a pipe")
    return stream
