"""The executor of many machines: the sweep announces its jobs in the store, and whoever sees the store takes them."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from rag_lab._kit.home import home
from rag_lab.experiment.executors.announced import Announced
from rag_lab.experiment.executors.job import Done, Job, Poll, Veto
from rag_lab.experiment.executors.parcels import BadParcelError, unpack
from rag_lab.experiment.executors.said_elsewhere import say_in
from rag_lab.experiment.executors.task import Task
from rag_lab.experiment.kernels.check_parameters import check_parameters
from rag_lab.runs.live_file import remove_live

_LOGGER = logging.getLogger(__name__)
_LOOK_EVERY_S = 0.25
_LOOK_FOR_WORKERS_S = 2.0
_ALONE_S = 60.0
_STOP_S = 10.0

Helpers = Callable[[str, Sequence[Job], int], AbstractContextManager[None]]  # the run, its jobs, how many to start


def command(run: str, *more: str) -> list[str]:
    """Return the command of a worker in this Python; it imports nothing from the working folder (-P)."""
    return [sys.executable, "-P", "-c", "from rag_lab.cli import main; main()", "worker", run, *more]


def execute(
    jobs: Sequence[Job],
    n_jobs: int = 1,
    cwd: Path | None = None,
    *,
    poll: Poll = lambda running: None,
    veto: Veto = lambda job, runs: "",
) -> Iterator[Done]:
    """Yield each job as it ends, on whichever machine; `n_jobs` workers are started on this one, which may be none."""
    return announce_and_collect(jobs, n_jobs, poll, veto, local_workers)


def announce_and_collect(jobs: Sequence[Job], n_jobs: int, poll: Poll, veto: Veto, helpers: Helpers) -> Iterator[Done]:
    """Announce jobs in the store, and yield each when its results are there and unpacked.

    What workers hand in while nobody collects stays in the store for the next start of the sweep.
    """
    if not jobs:
        return
    for job in jobs:
        check_parameters(job.notebook, job.parameters)
    tasks = {job.name: Task.of(job) for job in jobs}
    run = next(iter(tasks.values())).origin.run
    announced = Announced.of(run)
    open_jobs = {job.name: job for job in jobs}
    keys = announced.announce([*tasks.values()])
    watch = _Watch(announced)
    with helpers(run, jobs, n_jobs), announced.memory.held_open():
        while open_jobs:
            if (found := announced.collect({name: keys[name] for name in open_jobs})) is not None:
                name, parcel = found
                yield _done(open_jobs.pop(name), parcel)
                announced.taken(keys[name])
                continue
            running = watch.running({name: keys[name] for name in open_jobs})
            for name, said in watch.said().items():
                say_in(open_jobs[name].output.parent, said)
            poll(running)
            vetoed = {name: why for name, job in open_jobs.items() if (why := veto(job, name in running))}
            announced.withdraw(keys[name] for name in vetoed)
            for name, why in vetoed.items():
                remove_live(open_jobs[name].output.parent)
                yield Done(open_jobs.pop(name), why, 0.0, vetoed=True)
            time.sleep(_LOOK_EVERY_S)


def _done(job: Job, parcel: str) -> Done:
    try:
        ended = unpack(parcel, job.output.parent)
    except BadParcelError as error:
        return Done(job, str(error), 0.0)
    return Done(job, ended.reason, ended.seconds)


class _Watch:
    """Which jobs somebody is at, looked up every few seconds; where nobody is, for a minute, a sentence says so."""

    def __init__(self, announced: Announced) -> None:
        self._announced = announced
        self._looked_s = float("-inf")
        self._busy_s = time.monotonic()
        self._running: list[str] = []
        self._said: dict[str, str] = {}

    def running(self, keys: Mapping[str, str]) -> list[str]:
        """Return the names of those of the jobs (keys by name) that somebody has claimed."""
        now_s = time.monotonic()
        if now_s - self._looked_s >= _LOOK_FOR_WORKERS_S:
            self._looked_s = now_s
            is_any = bool(self._announced.holders(keys.values()))
            self._running = [n for n, key in keys.items() if self._announced.holders([key])] if is_any else []
            said = self._announced.said(keys[name] for name in self._running)
            self._said = {name: said[keys[name]] for name in self._running if keys[name] in said}
            self._busy_s = now_s if is_any else self._busy_s
            if now_s - self._busy_s > _ALONE_S:
                self._busy_s = float("inf")
                _LOGGER.warning(
                    "No worker has taken anything for %.0f s; start one, on any machine that sees the store, with: "
                    "rag-lab worker %s",
                    _ALONE_S,
                    self._announced.run,
                )
        return [name for name in self._running if name in keys]

    def said(self) -> dict[str, str]:
        """Return what jobs say of themselves, by their names, as far as nobody was told of it."""
        said, self._said = self._said, {}
        return said


@contextmanager
def local_workers(run: str, jobs: Sequence[Job], n: int) -> Iterator[None]:
    """Keep `n` workers on this machine in this block."""
    known = jobs[0].origin
    dataset = known.dataset_path if known is not None else ""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        environment = {**os.environ, **jobs[0].environment, "RAG_LAB_HOME": str(home())}
        started = [
            subprocess.Popen(  # noqa: S603 - our own command
                command(run, "--dataset", dataset),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=environment,
                start_new_session=True,  # Ctrl-C reaches this process only, which then ends the others in order
            )
            for _ in range(n)
        ]
        try:
            yield
        finally:
            _stop(started)
            if any(worker.returncode == 2 for worker in started):
                said.seek(0)
                _LOGGER.warning("A worker on this machine ended: %s", said.read().strip().rpartition("\n")[2])


def _stop(workers: Sequence[subprocess.Popen[bytes]]) -> None:
    for worker in workers:
        worker.terminate()
    for worker in workers:
        try:
            worker.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait(_STOP_S)
