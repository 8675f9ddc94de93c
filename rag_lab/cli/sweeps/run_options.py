"""How a sweep runs, as options of the commands that run one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from rag_lab._kit.config_file import parse_yaml, read_mapping
from rag_lab.errors import ConfigError

Jobs = Annotated[
    str,
    typer.Option(metavar="N|auto", help="Variants that run at the same time; auto: as many as cores and memory allow."),
]
Executor = Annotated[
    str,
    typer.Option(
        help="Where variants run. local: here. workers: wherever `rag-lab worker RUN` is started, and in "
        "--jobs workers here. ray: on a Ray cluster. slurm: in --jobs workers that are submitted."
    ),
]
Slurm = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="What --executor slurm asks for, as timeout_min=60 or slurm_partition=gpu, or a YAML file; repeatable.",
    ),
]
CellMinutes = Annotated[
    float, typer.Option(min=0.01, help="For how many minutes a cell of a notebook may run; it is ended then.")
]
Check = Annotated[
    bool | None,
    typer.Option(
        "--check/--no-check",
        help="Ask each variant two questions first, and stop where one would fail in all; by itself where a sweep "
        "takes more than two minutes of calls.",
    ),
]
KeepGoing = Annotated[bool, typer.Option("--keep-going", help="Run the rest whatever the check finds.")]
RetryFailed = Annotated[
    bool,
    typer.Option(
        "--retry-failed",
        help="Try again, too, what failed for reasons that last, as a reply that cannot be used; no result is replaced "
        "before another is there.",
    ),
]
Cold = Annotated[
    bool,
    typer.Option("--cold", help="Start a new process for each notebook, instead of one that is prepared."),
]


def parse_slurm(given: Iterable[str]) -> dict[str, Any]:
    """Return what a scheduler is asked for, by key; of a YAML file where one is named.

    Raises:
        ConfigError: if one is neither a file nor `key=value`.
    """
    found: dict[str, Any] = {}
    for one in given:
        key, equals, value = one.partition("=")
        asked = {key: parse_yaml(value)} if equals and key else read_mapping(one) if Path(one).is_file() else None
        if not isinstance(asked, dict):
            raise ConfigError(f"--slurm {one!r} is neither key=value nor a YAML file of keys; write timeout_min=60.")
        found |= asked
    return found
