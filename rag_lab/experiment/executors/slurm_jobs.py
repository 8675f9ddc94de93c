"""The executor of a scheduler: submitit submits workers, which take the jobs that the sweep announces in the store."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from rag_lab.errors import ConfigError
from rag_lab.experiment.executors.job import Done, Job, Poll, Veto
from rag_lab.experiment.executors.workers import announce_and_collect, command

FOLDER = "scheduler"  # in the run folder: what submitit writes, with what workers print
CLUSTER = "cluster"  # `slurm`, or `local` for processes of this machine
_MINUTES = 24 * 60
_SAFE_PATH = "PYTHONSAFEPATH"
_PYTHON = f"{shlex.quote(sys.executable)} -P"  # without the working folder among the places to import from


def execute(
    jobs: Sequence[Job],
    n_jobs: int = 1,
    cwd: Path | None = None,
    *,
    poll: Poll = lambda running: None,
    veto: Veto = lambda job, runs: "",
    given: Mapping[str, Any] | None = None,
) -> Iterator[Done]:
    """Yield each job as it ends; `n_jobs` workers are submitted to the scheduler, and cancelled at the end.

    Args:
        jobs: as for every executor.
        n_jobs: how many workers are submitted, as one array; none are more than jobs.
        cwd: as for every executor.
        poll: as for every executor.
        veto: as for every executor.
        given: what submitit takes: `timeout_min`, `cpus_per_task`, `mem_gb`, `slurm_partition`, `slurm_gres`, …

    Raises:
        ConfigError: if submitit is missing, there is no scheduler here, or it does not know what is asked for.
    """
    return announce_and_collect(jobs, n_jobs, poll, veto, partial(_submitted, given or {}))


@contextmanager
def _submitted(given: Mapping[str, Any], run: str, jobs: Sequence[Job], n: int) -> Iterator[None]:
    scheduler, submitit = _scheduler(given, _folder(jobs[0])), _submitit()
    # A command, so that nothing of ours is pickled; its working folder is this one.
    worker = submitit.helpers.CommandFunction(command(run), verbose=False)
    n = min(max(n, 1), len(jobs))
    with _safe_path(), scheduler.batch():
        submitted = [scheduler.submit(worker) for _ in range(n)]
    try:
        yield
    finally:
        for one in submitted:
            with suppress(Exception):  # whatever it says, it has ended or ends by its own time
                one.cancel()


@contextmanager
def _safe_path() -> Iterator[None]:
    """Keep the working folder out of what submitit starts on this machine, which has no option for it."""
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]


def _scheduler(given: Mapping[str, Any], folder: Path) -> Any:
    submitit = _submitit()
    asked = {"timeout_min": _MINUTES, "name": "rag-lab", **given}
    cluster = asked.pop(CLUSTER, "slurm")
    try:
        scheduler = submitit.AutoExecutor(folder=folder, cluster=cluster, slurm_python=_PYTHON)
        scheduler.update_parameters(**asked)
    except (RuntimeError, ValueError, TypeError, NameError, AssertionError) as error:
        raise ConfigError(
            f"The scheduler cannot be used: {error}; run where sbatch is, and give --slurm what submitit knows, as "
            "timeout_min=60 or slurm_partition=gpu."
        ) from None
    return scheduler


def _folder(job: Job) -> Path:
    return job.output.parents[2] / FOLDER


def _submitit() -> Any:
    try:
        import submitit
    except ImportError:
        raise ConfigError(
            "--executor slurm needs submitit, which is not installed; install it with `pip install 'rag_lab[slurm]'`."
        ) from None
    return submitit
