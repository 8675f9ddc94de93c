"""Executors by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rag_lab.errors import ConfigError, unknown_name
from rag_lab.experiment.executors import local, ray_tasks, slurm_jobs, workers
from rag_lab.experiment.executors.job import Execute

LOCAL = "local"
WORKERS = "workers"
SLURM = "slurm"
EXECUTORS: dict[str, Execute] = {
    LOCAL: local.execute,
    WORKERS: workers.execute,
    "ray": ray_tasks.execute,
    SLURM: slurm_jobs.execute,
}


def executor_of(name: str, slurm: Mapping[str, Any] | None = None) -> Execute:
    """Return the executor of this name; `slurm` is what a scheduler is asked for.

    Raises:
        ConfigError: if there is none.
    """
    if name not in EXECUTORS:
        raise ConfigError(unknown_name("executor", name, EXECUTORS))
    if slurm and name != SLURM:
        raise ConfigError(f"--slurm is for --executor {SLURM}, and the executor is {name}; leave one of them out.")
    return partial(slurm_jobs.execute, given=slurm) if slurm else EXECUTORS[name]
