"""Jobs, the contract of whatever executes them, and the executor of this machine."""

import ast
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from rag_lab._kit import home, machine
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.experiment.kernels.fork_server import CAN_FORK, ForkServer, ForkServerGone
from rag_lab.redaction import shown

CELL_MINUTES = 24 * 60.0
_LOGGER = logging.getLogger(__name__)
_POLL_S = 0.05
_STOP_S = 5.0
STOPPED_S = 120.0  # after which a stopped process is ended, as a kernel that does not answer
_STOPPED_LOOK_S = 1.0
_MOST_GONE = 3  # fork servers in a row, after which there is no other
starters: "list[Starter]" = []  # what was prepared before its jobs were known
Poll = Callable[[Sequence[str]], None]  # the names of the jobs that run


@dataclass(frozen=True, slots=True)
class Origin:
    """What other machines have to know of a job's sweep."""

    run: str  # its name in the store of results
    identity: str  # a digest of all that the job's results depend on
    dataset: str  # by name
    dataset_path: str  # as it stands in the job's parameters
    dataset_digest: str


@dataclass(frozen=True, slots=True)
class Job:
    """One execution: `notebook` with `parameters` into `output`; what its processes print goes to `log`."""

    name: str
    notebook: Path
    output: Path
    parameters: Mapping[str, Any]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)  # beside this process's own
    cold: bool = False  # in a process of its own from the start, and in none that is prepared
    cell_minutes: float = CELL_MINUTES  # for which a cell may run
    waits_for: str = ""  # models behind servers: another job computes meanwhile
    origin: Origin | None = None  # where the job may run on another machine


@dataclass(frozen=True, slots=True)
class Done:
    """How a job ended; `reason` is empty where it succeeded. `vetoed`: it was not started, or ended early."""

    job: Job
    reason: str
    seconds: float
    vetoed: bool = False


Veto = Callable[[Job, bool], str]  # a job and whether it runs already: why it must not start or go on, or ""
# Yields each job as it ends, at most so many running at a time; see `execute`. Raises RagLabError before anything runs
# where it cannot be used here.
Execute = Callable[..., Iterator[Done]]


def check_parameters(notebook: Path, parameters: Mapping[str, Any]) -> None:
    """Refuse what papermill would only warn of, or turn into text; its library takes seconds to import.

    That is a notebook without a cell of parameters, each parameter that it does not declare, and each value that is no
    scalar.
    """
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        source = next(cell["source"] for cell in cells if "parameters" in cell["metadata"].get("tags", ()))
        code = ast.parse(source if isinstance(source, str) else "".join(source))
    except StopIteration:
        raise ConfigError(
            f"{notebook} has no cell with the tag 'parameters', so nothing can be given to it; tag one."
        ) from None
    except (OSError, ValueError, SyntaxError, AttributeError, LookupError, TypeError) as error:
        raise ConfigError(f"{notebook} cannot be read as a notebook with parameters: {error}.") from None
    declared = [node.id for node in ast.walk(code) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    problems = [
        unknown_name(f"parameter of {notebook.name}", name, declared) for name in parameters if name not in declared
    ]
    problems += [
        f"{name} must be text, a number, true, false or null, got a {type(value).__name__}"
        for name, value in parameters.items()
        if not isinstance(value, str | int | float | bool | None)
    ]
    if problems:
        raise ConfigError("; ".join(problems))


@dataclass(eq=False, slots=True)
class _Running:
    job: Job
    process: Any  # a `subprocess.Popen` with pipes, or a `ForkedProcess`
    log: threading.Thread
    started_s: float
    looked_s: float = 0.0  # when it was last looked at
    n_stopped: int = 0  # looks in a row in which it was stopped: no time counts in which this process was, too


def execute(
    jobs: Sequence[Job],
    n_jobs: int = 1,
    *,
    cwd: Path | None = None,
    poll: Poll = lambda running: None,
    veto: Veto = lambda job, runs: "",
    starter: "Starter | None" = None,
) -> Iterator[Done]:
    """Yield each job as it ends, at most `n_jobs` running at a time; one that fails does not stop the others.

    `poll`, with the names of the running jobs, and `veto` are called several times a second. Whatever ends the
    iteration early (Ctrl-C, say) ends the running jobs. A `starter` that is passed is kept for jobs to come.
    """
    for job in jobs:
        check_parameters(job.notebook, job.parameters)
    waiting, running = [*jobs], list[_Running]()
    start = starter or (starters.pop() if starters else Starter())
    try:
        while waiting or running:
            while waiting and len(running) < n_jobs:
                # A job that waits for a server, where none does; else one that waits for none.
                busy = {one.job.waits_for for one in running} - {""}
                job = min(waiting, key=lambda one: 2 if one.waits_for in busy else not one.waits_for)
                waiting.remove(job)
                if reason := veto(job, False):
                    yield Done(job, reason, 0.0, vetoed=True)
                else:
                    running.append(start(job, cwd or Path.cwd()))
            (start.fork_server.wait if start.fork_server is not None else time.sleep)(_POLL_S)
            poll([one.job.name for one in running])
            for one in list(running):
                if (done := _ended(one, veto)) is not None:
                    running.remove(one)
                    yield done
    finally:
        for one in running:
            _stop(one.process)
        for one in running:
            one.log.join(_STOP_S)  # which lasts as long as its kernel
        if running:
            machine.remove_scratch()  # what was stopped could not delete its temporary folders
        if starter is None:
            start.close()


def _ended(one: _Running, veto: Veto) -> Done | None:
    """Return how a job ended, ending it where it is vetoed or was stopped (SIGSTOP, a debugger); None while it runs."""
    if one.process.poll() is not None:
        reply = one.process.stdout.read().strip()
        _stop(one.process)
        one.log.join(_STOP_S)
        try:
            reason = str(json.loads(reply)["reason"])
        except (ValueError, KeyError):
            reason = f"The notebook's process ended with status {one.process.returncode}; see {one.job.log}."
        return Done(one.job, reason, time.monotonic() - one.started_s)
    if time.monotonic() - one.looked_s >= _STOPPED_LOOK_S:
        one.n_stopped = one.n_stopped + 1 if machine.Process.of(one.process.pid).is_stopped() else 0
        one.looked_s = time.monotonic()
    if is_stopped := one.n_stopped >= STOPPED_S / _STOPPED_LOOK_S:
        what = f"The notebook's process was stopped for {STOPPED_S:g} seconds and was ended"
        reason = f"{what}; start the same command again."
        one.process.kill()
    elif not (reason := veto(one.job, True)):
        return None
    _stop(one.process)
    return Done(one.job, reason, time.monotonic() - one.started_s, vetoed=not is_stopped)


@contextmanager
def prepared(*, from_here: bool = False) -> "Iterator[Starter]":
    """Prepare processes from now on, for the `execute` that comes in this block; what already does so is enough.

    `from_here`: they share what this process has imported; it must be a command's, in which nothing has begun.
    """
    if starters:
        yield starters[0]
        return
    starter = Starter(ahead=True, from_here=from_here)
    starters.append(starter)
    try:
        yield starter
    finally:
        if starter in starters:
            starters.remove(starter)
        starter.close()


class Starter:
    """Starts the processes of jobs: prepared ones where they can be had, and are wanted."""

    def __init__(self, *, ahead: bool = False, from_here: bool = False) -> None:
        self.fork_server = ForkServer(_environment(), from_here=from_here) if ahead and CAN_FORK else None
        self._can_fork = CAN_FORK
        self._n_gone = 0

    def __call__(self, job: Job, cwd: Path) -> _Running:
        """Start a job."""
        job.output.parent.mkdir(parents=True, exist_ok=True)
        environment = {**_environment(), **job.environment}
        process: Any = None
        # Another fork server takes the place of one that is gone, unless too many have.
        while not job.cold and process is None and self._can_fork:
            try:
                self.fork_server = self.fork_server or ForkServer(_environment())
                process, self._n_gone = self.fork_server.start(), 0
            except (ForkServerGone, OSError) as error:
                self.close()
                self._n_gone += 1
                self._can_fork = self._n_gone < _MOST_GONE
                if not self._can_fork:
                    how = "each is started anew, which takes longer."
                    _LOGGER.warning("Kernels are no longer prepared (%s); %s", error, how)
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
        process.stdin.write(json.dumps(task) + "\n")
        process.stdin.flush()
        return _Running(job, process, log, time.monotonic())

    def close(self) -> None:
        """End what prepares processes."""
        if self.fork_server is not None:
            self.fork_server.close()
            self.fork_server = None


def _keep_log(said: TextIO, log: TextIO) -> None:
    """Write what a job's processes print, as it may be shown, until the last of them has ended."""
    with suppress(OSError), said, log:
        for line in said:
            with suppress(OSError):  # a full disk is told by what is worth more; who prints must not wait
                log.write(shown(line))
                log.flush()


def _environment() -> dict[str, str]:
    """Return the environment of jobs: one home for all, a quiet kernel, and threads that wait without taking a core.

    Two kernels whose threads spin while they wait embed a quarter more slowly; OpenBLAS gains nothing by a second one.
    """
    waiting = {"OMP_WAIT_POLICY": "PASSIVE", "OPENBLAS_NUM_THREADS": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    return {**waiting, **os.environ, "RAG_LAB_HOME": str(home.home())}


def _stop(process: Any) -> None:
    """Close the pipes, as a worker whose stdin ends, ends; and wait for it."""
    for pipe in (process.stdin, process.stdout):
        if not pipe.closed:
            pipe.close()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(_STOP_S)
