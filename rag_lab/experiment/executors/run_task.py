"""Runs a task on this machine, in a folder that is gone afterwards, and returns its results as a parcel."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rag_lab._kit.machine.scratch import scratch_folder
from rag_lab._kit.process import Process
from rag_lab.experiment.executors import local
from rag_lab.experiment.executors.parcels import BadParcelError, Ended, pack
from rag_lab.experiment.executors.said_elsewhere import EVERY_S, said_in
from rag_lab.experiment.executors.task import Task

_LOOK_EVERY_S = 2.0


class Withdrawn(Exception):  # noqa: N818 - it is no error
    """Nobody waits for the task any more."""


def run_task(
    task: Task,
    dataset: str = "",
    modules: str = "",
    *,
    environment: dict[str, str] | None = None,
    is_over: Callable[[], bool] = lambda: False,
    tell: Callable[[str], None] = lambda said: None,
    starter: local.Starter | None = None,
) -> tuple[Ended, str]:
    """Run a task and return how it ended, and its parcel.

    Args:
        task: what to run.
        dataset: as in `Task.job`.
        modules: as in `Task.job`.
        environment: of the task's processes, beside its own and this process's.
        is_over: asked every few seconds; where it says so, the task is ended.
        tell: is given what the task says of itself, every few seconds, where that is new; see `said_elsewhere`.
        starter: of processes; one of its own where None.

    Raises:
        Withdrawn: if the task was over before it had ended.
        RagLabError: if it cannot run on this machine.
    """
    with scratch_folder("task") as folder:
        job = task.job(Path(folder).resolve(), dataset, modules)
        job = replace(job, environment={**(environment or {}), **job.environment})
        poll = _Teller(job.output.parent, tell)
        [done] = local.execute([job], poll=poll, veto=_Veto(is_over), starter=starter)
        if done.vetoed:
            raise Withdrawn
        ended = Ended(done.reason, done.seconds, Process.this().host)
        try:
            return ended, pack(job.output.parent, ended)
        except BadParcelError as error:
            ended = replace(ended, reason=str(error))
            for path in job.output.parent.iterdir():
                if path != job.log:
                    path.unlink()
            return ended, pack(job.output.parent, ended)


class _Veto:
    """Ends a job that is over; it is looked up every few seconds only."""

    def __init__(self, is_over: Callable[[], bool]) -> None:
        self._is_over = is_over
        self._looked_s = time.monotonic()

    def __call__(self, job: object, runs: bool) -> str:
        if not runs or time.monotonic() - self._looked_s < _LOOK_EVERY_S:
            return ""
        self._looked_s = time.monotonic()
        return "it is over" if self._is_over() else ""


class _Teller:
    """Tells every few seconds what a job in `folder` says of itself, where that is new."""

    def __init__(self, folder: Path, tell: Callable[[str], None]) -> None:
        self._folder, self._tell = folder, tell
        self._said, self._looked_s = "", time.monotonic()

    def __call__(self, running: object) -> None:
        if time.monotonic() - self._looked_s < EVERY_S:
            return
        self._looked_s = time.monotonic()
        said = said_in(self._folder)
        if said and said != self._said:
            self._said = said
            self._tell(said)
