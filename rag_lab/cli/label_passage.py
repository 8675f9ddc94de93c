"""`rag-lab ask --label`: the passages that were found by number, and which of them answers."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import typer

from rag_lab.cli.shell.next_step import next_steps

if TYPE_CHECKING:
    from rag_lab.pipeline import Pipeline
    from rag_lab.records import Question

_ASKED = (
    "Which passages answer the question? Numbers (1 3), 0 where the documents hold no answer, Enter to label nothing"
)


def label_passage(pipeline: Pipeline, question: Question) -> None:
    """Show what was found, ask which of it answers, and write that as a label."""
    from rag_lab.data.labels import questions_file
    from rag_lab.notebook.by_hand.label import label

    found = label(pipeline, question)
    for number, passage in enumerate(found.passages, start=1):
        page = "" if passage.hit.page is None else f", page {passage.hit.page}"
        typer.echo(f"\n[{number}] {passage.hit.source}{page}\n{passage.text}")
    reply = typer.prompt(f"\n{_ASKED}", default="", show_default=False)
    numbers = _numbers(reply, len(found.passages))
    if not numbers:
        typer.echo("No label was written.")
        return
    for number in numbers:
        if number:
            found.take(number)
        else:
            found.no_answer()
    file = questions_file(pipeline.dataset)
    typer.echo(f"The label stands in {file}.")
    folder = shlex.quote(str(file.parent))
    next_steps(
        f"rag-lab ask ANOTHER_QUESTION --dataset {folder} --label",
        f"rag-lab datasets check {folder}   what is labelled",
    )


def _numbers(reply: str, most: int) -> list[int]:
    """Return what was typed as numbers of passages.

    Raises:
        ConfigError: if it is something else, or 0 beside others.
    """
    from rag_lab.errors import ConfigError

    typed = reply.replace(",", " ").split()
    numbers = [int(part) for part in typed if part.isascii() and part.isdigit() and int(part) <= most]
    if len(numbers) < len(typed) or (0 in numbers and len(numbers) > 1):
        raise ConfigError(f"{reply!r:.60} does not name passages: type numbers from 1 to {most}, or 0 alone.")
    return numbers
