"""Executors by name."""

from __future__ import annotations

from rag_lab.errors import ConfigError, unknown_name
from rag_lab.experiment.executors import local
from rag_lab.experiment.executors.job import Execute

LOCAL = "local"
EXECUTORS: dict[str, Execute] = {LOCAL: local.execute}


def executor_of(name: str) -> Execute:
    """Return the executor of this name.

    Raises:
        ConfigError: if there is none.
    """
    if name not in EXECUTORS:
        raise ConfigError(unknown_name("executor", name, EXECUTORS))
    return EXECUTORS[name]
