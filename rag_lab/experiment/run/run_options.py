"""How a sweep runs; nothing here changes a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_lab.experiment.executors.job import CELL_MINUTES
from rag_lab.experiment.executors.launchers import LOCAL
from rag_lab.experiment.run.side_by_side import AUTO, Jobs


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a sweep runs.

    Args:
        jobs: variants that run at the same time; as many as the machine has room for where `auto`.
        executor: where they run, by the name of an executor.
        cold: start a new process for each notebook, instead of one that is prepared.
        cell_minutes: for which a cell of a notebook may run; it is ended then.
        progress: show a progress bar, or a line for each variant where no one watches.
        environment: of every kernel, beside this process's own.
        run: the run's name in the store of results.
        slurm: what a scheduler is asked for, where the executor is one.
        check: ask each variant two questions first; where None, if that costs little beside the rest.
        keep_going: run the rest whatever that check finds.
        retry_failed: try again, too, what another attempt will not obviously cure.
    """

    jobs: Jobs = AUTO
    executor: str = LOCAL
    cold: bool = False
    cell_minutes: float = CELL_MINUTES
    progress: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)
    run: str = ""
    slurm: Mapping[str, Any] = field(default_factory=dict)
    check: bool | None = None
    keep_going: bool = False
    retry_failed: bool = False
