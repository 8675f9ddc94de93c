"""Options of every command, which stand before its name: what is logged, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_lab._kit.logs import LEVELS, begin_logs


def global_options(
    log_level: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            help=f"Log from this level on: {', '.join(LEVELS)}. On stderr, or in the log file.",
            autocompletion=lambda: list(LEVELS),
        ),
    ] = None,
    log_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Append JSON lines to this file, kernels too: time, level, logger, message, variant, stage, question.",
        ),
    ] = None,
) -> None:
    """Begin to log where it is asked for."""
    begin_logs(log_level, log_file)
