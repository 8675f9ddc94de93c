"""`rag-lab status`: how a run stands, from another terminal or machine."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_lab.cli import completion
from rag_lab.errors import RagLabError

if TYPE_CHECKING:
    from rag_lab.experiment.watch.sweep_status import SweepStatus

_CLEAR = "\x1b[2J\x1b[H"


def status(
    run: Annotated[
        Path | None,
        typer.Argument(
            help="A run folder, as `rag-lab sweep` writes it; all in results/ where left out.",
            metavar="RUN",
            autocompletion=completion.runs,
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it anew until the run ends; Ctrl-C ends watching.")
    ] = False,
    every: Annotated[float, typer.Option(min=0.2, max=3600, help="Seconds between two looks.")] = 2.0,
    as_json: Annotated[bool, typer.Option("--json", help="For programs: JSON, with --watch one line a look.")] = False,
) -> None:
    """Say how a run stands: stage, calls, money and minutes left.

    It reads the run folder alone, from any terminal, or machine that sees the folder, and changes nothing. It tells
    for each variant its stage, how many questions have passed it, how many results were remembered and computed, calls,
    dollars, minutes, what is left as a range, and the last failure; of a race each round; of a sweep that runs no more
    whether it has ended, was stopped or was killed. Minutes left go by what variants took in this start; before the
    first has ended, by the calls that the bill says are left.

    The exit status is 0 while all is well, 1 where something failed or the sweep was stopped or killed.

    \b
    Examples:
      rag-lab status
      rag-lab status results/decisive
      rag-lab status results/decisive --watch
      rag-lab status results/decisive --json
    """
    from rag_lab.experiment.watch.sweep_status import sweep_status

    if run is None:
        _list(as_json, watch)
        return
    found = sweep_status(run)
    _show(found, as_json, watch)
    try:
        while watch and found.state == "running":
            time.sleep(every)
            found = sweep_status(run)
            _show(found, as_json, watch)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if not found.is_well:
        raise typer.Exit(1)


def _list(as_json: bool, watch: bool) -> None:
    """Say how all runs in `results/` stand, the one that was started last first."""
    from rag_lab._kit.wording import text_table
    from rag_lab.experiment.watch.sweep_status import sweep_status
    from rag_lab.runs.run_folder import PLAN_FILE

    paths = sorted(map(Path, completion.runs("")), key=lambda path: -(path / PLAN_FILE).stat().st_mtime)
    if watch:
        named = str(paths[0]) if paths else "results/NAME"
        raise RagLabError(f"--watch shows one run: name it, as `rag-lab status {named} --watch`.")
    rows: list[tuple[str, ...]] = []
    for path in paths:
        try:
            found = sweep_status(path)
            ended = sum(one.state not in ("waiting", "running") for one in found.variants)
            rows.append((str(path), found.state, f"{ended} of {len(found.variants)}", found.said))
        except RagLabError as error:
            rows.append((str(path), "damaged", "", str(error)))
    header = ("run", "stands", "variants", "said")
    if as_json:
        typer.echo(json.dumps([dict(zip(header, row, strict=True)) for row in rows], indent=2, ensure_ascii=False))
    else:
        typer.echo(text_table(header, rows) if rows else "There are no runs in results/ here.")


def _show(found: SweepStatus, as_json: bool, watch: bool) -> None:
    if as_json:
        typer.echo(json.dumps(to_json(found), indent=None if watch else 2, ensure_ascii=False))
        return
    if watch and sys.stdout.isatty() and sys.__stdout__ is not None:
        sys.__stdout__.write(_CLEAR)  # ours, so it goes around the door that shows escape sequences
    typer.echo(str(found))


def to_json(found: SweepStatus) -> dict[str, Any]:
    """Return a run's status as JSON values."""
    from dataclasses import asdict

    return {
        **asdict(found),
        "path": str(found.path),
        "calls": found.calls,
        "cost_usd": found.cost_usd,
        "is_well": found.is_well,
        "rounds": [to_json(one) for one in found.rounds],
    }


COMMANDS = (status,)
