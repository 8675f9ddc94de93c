"""How a sweep runs, as options of the commands that run one."""

from __future__ import annotations

from typing import Annotated

import typer

Jobs = Annotated[
    str,
    typer.Option(metavar="N|auto", help="Variants that run at the same time; auto: as many as cores and memory allow."),
]
Executor = Annotated[str, typer.Option(help="Where variants run: local.")]
CellMinutes = Annotated[
    float, typer.Option(min=0.01, help="For how many minutes a cell of a notebook may run; it is ended then.")
]
Cold = Annotated[
    bool,
    typer.Option("--cold", help="Start a new process for each notebook, instead of one that is prepared."),
]
