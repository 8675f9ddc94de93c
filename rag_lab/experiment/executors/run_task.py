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
    starter: local.Starter | None = None,
) -> tuple[Ended, str]:
    """Run a task and return how it ended, and its parcel.

    Args:
        task: what to run.
        dataset: as in `Task.job`.
        modules: as in `Task.job`.
        environment: of the task's processes, beside its own and this process's.
        is_over: asked every few seconds; where it says so, the task is ended.
        starter: of processes; one of its own where None.

    Raises:
        Withdrawn: if the task was over before it had ended.
        RagLabError: if it cannot run on this machine.
    """
    with scratch_folder("task") as folder:
        job = task.job(Path(folder).resolve(), dataset, modules)
        job = replace(job, environment={**(environment or {}), **job.environment})
        [done] = local.execute([job], veto=_Veto(is_over), starter=starter)
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
