"""A job, how it ended, and the contract of whatever executes jobs."""

import ast
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rag_lab.errors import ConfigError, unknown_name

CELL_MINUTES = 24 * 60.0
TAG = "parameters"  # of the cell that declares them, as papermill has it
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
    origin: Origin | None = None  # where the job may run on another machine


@dataclass(frozen=True, slots=True)
class Done:
    """How a job ended; `reason` is empty where it succeeded. `vetoed`: it was not started, or ended early."""

    job: Job
    reason: str
    seconds: float
    vetoed: bool = False


Veto = Callable[[Job, bool], str]  # a job and whether it runs already: why it must not start or go on, or ""


class Execute(Protocol):
    """Executes jobs somewhere."""

    def __call__(self, jobs: Sequence[Job], n_jobs: int = 1, *, poll: Poll, veto: Veto) -> Iterator[Done]:
        """Yield each job as it ends, at most `n_jobs` running at a time; one that fails does not stop the others.

        `poll`, with the names of the running jobs, and `veto` are called several times a second. Whatever ends the
        iteration early (Ctrl-C, say) ends the running jobs.

        Raises:
            ConfigError: before anything runs, if a job's parameters are unknown to its notebook or no scalars.
            RagLabError: before anything runs, if the executor cannot be used here.
        """


def check_parameters(notebook: Path, parameters: Mapping[str, Any]) -> None:
    """Refuse what papermill would only warn of, or turn into text; its library takes seconds to import.

    Raises:
        ConfigError: if the notebook has no cell with parameters; else naming every parameter that it does not declare,
            and every value that is no scalar.
    """
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        source = next(cell["source"] for cell in cells if TAG in cell["metadata"].get("tags", ()))
        statements = ast.parse(source if isinstance(source, str) else "".join(source)).body
    except StopIteration:
        raise ConfigError(
            f"{notebook} has no cell with the tag {TAG!r}, so nothing can be given to it; tag one."
        ) from None
    except (OSError, ValueError, SyntaxError, AttributeError, LookupError, TypeError) as error:
        raise ConfigError(f"{notebook} cannot be read as a notebook with parameters: {error}.") from None
    targets: list[ast.expr] = []
    for statement in statements:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets += statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    declared = [target.id for target in targets if isinstance(target, ast.Name)]
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
