"""`rag-lab store`: what is remembered, whether it is whole, what may go, and how another machine gets it."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag_lab._kit.home import home
from rag_lab._kit.wording import some_of, text_table
from rag_lab.errors import ConfigError
from rag_lab.redaction import shown

if TYPE_CHECKING:
    from rag_lab.memory.care import Holding

app = typer.Typer(help="Look after what is remembered.", no_args_is_help=True, rich_markup_mode=None)
_SECONDS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_BYTES = {"kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}
_MB = 1_000_000
_NAMED = 20  # damaged entries


@app.command()
def stats() -> None:
    """Print what is remembered: entries, bytes and age, by kind and by the run that made it."""
    from rag_lab.memory import care, open_store

    address = open_store.store_address()
    typer.echo(f"Store: {open_store.place_of(address) if address else home()}")
    _echo(care.holdings())


@app.command()
def verify(drop: Annotated[bool, typer.Option("--drop")] = False) -> None:
    """Compare every value with its checksum; damaged ones are named, and it ends with status 1."""
    from rag_lab.memory import care

    checked = care.verify(drop=drop)
    for memory, key in checked.damaged[:_NAMED]:
        typer.echo(f"damaged: {memory} {shown(key)}")
    if len(checked.damaged) > _NAMED:
        typer.echo(f"… and {len(checked.damaged) - _NAMED:,} more")
    state = "all whole" if not checked.damaged else f"{len(checked.damaged):,} damaged{' and deleted' if drop else ''}"
    typer.echo(f"{_entries(checked.entries)} checked: {state}.")
    if checked.damaged and not drop:
        typer.echo("--drop deletes what is damaged.")
    raise typer.Exit(1 if checked.damaged and not drop else 0)


@app.command()
def prune(
    older_than: str = "",
    experiment: str = "",
    larger_than: str = "",
    yes: Annotated[bool, typer.Option("--yes")] = False,
) -> None:
    """Delete what all given options are true of; it is computed again where it is asked for."""
    from rag_lab.memory import care

    choice = care.Choice(
        _amount("--older-than", older_than, _SECONDS, "30d or 12h") if older_than else None,
        experiment or None,
        _amount("--larger-than", larger_than, _BYTES, "100kB or 2MB") if larger_than else None,
    )
    if choice == care.Choice():
        raise ConfigError("Nothing says what may go: give --older-than, --experiment or --larger-than.")
    if yes:
        typer.echo(f"{_entries(care.prune(choice))} deleted.")
        return
    _echo(care.holdings(choice))
    typer.echo("Nothing was deleted; --yes deletes them.")


@app.command()
def export(file: Path) -> None:
    """Write all that is remembered to a file, for another machine or another kind of store."""
    from rag_lab.memory import care

    written, damaged = care.export_store(file)
    left_out = f"; {damaged:,} damaged were left out" if damaged else ""
    typer.echo(f"{_entries(written)} written to {file}{left_out}.")


@app.command(name="import")
def import_(file: Path) -> None:
    """Add what a file holds; what is remembered already stays as it is. Damaged lines are refused one by one."""
    from rag_lab.memory import care

    taken = care.import_store(file)
    typer.echo(f"{_entries(taken.entries)} taken from {file}.")
    if taken.refused:
        lines = some_of([f"{number:,}" for number in taken.refused])
        typer.echo(f"{len(taken.refused):,} damaged lines were refused: {lines}.")
        raise typer.Exit(1)


def _echo(holdings: Sequence[Holding]) -> None:
    rows = []
    for one in holdings:
        size, moments = f"{one.n_bytes / _MB:,.1f}", (one.oldest_s, one.newest_s)
        ages = [time.strftime("%Y-%m-%d", time.localtime(at)) if at else "unknown" for at in moments]
        rows.append((one.memory, shown(one.run) or "by hand", one.entries, size, *ages))
    typer.echo(text_table(("kind", "run", "entries", "MB", "oldest", "newest"), rows))
    n_bytes = sum(one.n_bytes for one in holdings)
    typer.echo(f"{_entries(sum(one.entries for one in holdings))}, {n_bytes / _MB:,.1f} MB in all.")


def _entries(n: int) -> str:
    return "1 entry" if n == 1 else f"{n:,} entries"


def _amount(option: str, text: str, units: dict[str, int], allowed: str) -> float:
    found = re.fullmatch(rf"(\d{{1,12}}(?:\.\d+)?) ?({'|'.join(units)})", text.strip())
    if found is None:
        raise ConfigError(f"{option} is a number with a unit ({', '.join(units)}), not '{text}': give {allowed}.")
    return float(found[1]) * units[found[2]]
