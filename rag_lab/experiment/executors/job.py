"""A job, how it ended, and the contract of whatever executes jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

CELL_MINUTES = 24 * 60.0


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
    origin: Origin | None = None  # where the job may run on another machine


@dataclass(frozen=True, slots=True)
class Done:
    """How a job ended; `reason` is empty where it succeeded. `vetoed`: it was not started, or ended early."""

    job: Job
    reason: str
    seconds: float
    vetoed: bool = False


Veto = Callable[[Job, bool], str]  # a job and whether it runs already: why it must not start or go on, or ""
Poll = Callable[[Sequence[str]], None]  # the names of the jobs that run


class Execute(Protocol):
    """Executes jobs somewhere."""

    def __call__(
        self, jobs: Sequence[Job], n_jobs: int = 1, cwd: Path | None = None, *, poll: Poll, veto: Veto
    ) -> Iterator[Done]:
        """Yield each job as it ends, at most `n_jobs` running at a time; one that fails does not stop the others.

        `poll`, with the names of the running jobs, and `veto` are called several times a second. Whatever ends the
        iteration early (Ctrl-C, say) ends the running jobs.

        Raises:
            ConfigError: before anything runs, if a job's parameters are unknown to its notebook or no scalars.
            RagLabError: before anything runs, if the executor cannot be used here.
        """
