"""What to type next, said at the end of a command; on stderr, so that a command's output can be used by another."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import typer


def next_steps(*steps: str) -> None:
    """Say what can be typed next, a line each."""
    typer.echo("\nNext:" + "".join(f"\n  {step}" for step in steps), err=True)


def of_run(run: Path | str) -> None:
    """Say what can be done with a run folder."""
    folder = shlex.quote(str(run))
    next_steps(
        f"rag-lab open {folder}      its report in the browser",
        f"rag-lab compare {folder}   its scores here, as Markdown, LaTeX or CSV",
    )


def command_line(without: str = "") -> str:
    """Return the command that is running as it can be typed again, `without` one of its options."""
    return shlex.join(["rag-lab", *(word for word in sys.argv[1:] if word != without)])
