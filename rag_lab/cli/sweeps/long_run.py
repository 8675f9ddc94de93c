"""What takes over two minutes says so and asks, where somebody sits at a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rag_lab.experiment.plan import Plan

LONG_MINUTES = 2
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before what takes over two minutes.")]


def confirm_long(checked: Plan, yes: bool) -> None:
    """Ask before a plan is run that takes long; nothing is asked with `yes`, nor where nobody sits at a terminal.

    Raises:
        Exit: if it is not to be run.
    """
    if yes or not _is_terminal():
        return
    from rag_lab.experiment.forecast.cost_estimate import estimate, minutes_ahead

    minutes, assumed = minutes_ahead(estimate(checked))
    if minutes <= LONG_MINUTES:
        return
    why = f" ({'; '.join(assumed)})" if assumed else ""
    if not typer.confirm(f"This takes about {minutes:,.0f} minutes{why}. Go on?", default=True, err=True):
        typer.echo("Nothing was run. --dry-run shows what would be, and fewer questions take less.", err=True)
        raise typer.Exit(1)


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
