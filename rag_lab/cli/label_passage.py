"""`rag-lab ask --label`: what of the passages answers, by number, on one screen."""

from __future__ import annotations

import shlex
import shutil
from textwrap import wrap
from typing import TYPE_CHECKING

import typer

from rag_lab.cli.shell.next_step import next_steps

if TYPE_CHECKING:
    from rag_lab.notebook.label import Found, Labelling
    from rag_lab.pipeline import Pipeline
    from rag_lab.records import Question

_ASKED = (
    "Which lines marked > answer? Numbers (1 3); 2. lists all sentences of passage 2; 0 where the documents hold no "
    "answer; Enter to label nothing"
)
_LINES, _ROOM = 3, 6  # lines of each passage; of the screen, for the question and what was answered


def label_passage(pipeline: Pipeline, question: Question) -> None:
    """Show where the passages come nearest to the question, ask what of it answers, and write that as a label."""
    from rag_lab.data.labels import questions_file
    from rag_lab.notebook.label import label

    found = label(pipeline, question)
    width, height = shutil.get_terminal_size()
    shown = found.passages[: max(3, (height - _ROOM) // (_LINES + 1))]
    typer.echo()
    for number, passage in enumerate(shown, start=1):
        page = "" if passage.hit.page is None else f", page {passage.hit.page}"
        typer.echo("\n".join([f"[{number}] {passage.hit.source}{page}", *_around(passage, width)]))
    reply = _reply()
    while reply.endswith(".") and reply[:-1].isdecimal() and 0 < int(reply[:-1]) <= len(shown):
        for n, text in enumerate(shown[int(reply[:-1]) - 1].units, start=1):
            typer.echo(f"{reply}{n}  {' '.join(text.split())}")
        reply = _reply()
    if not _take(found, reply, shown):
        typer.echo("No label was written.")
        return
    file = questions_file(pipeline.dataset)
    typer.echo(f"The label stands in {file}.")
    folder = shlex.quote(str(file.parent))
    next_steps(
        f"rag-lab ask ANOTHER_QUESTION --dataset {folder} --label",
        f"rag-lab datasets check {folder}   what is labelled",
    )


def _reply() -> str:
    return str(typer.prompt(f"\n{_ASKED}", default="", show_default=False)).strip()


def _around(passage: Found, width: int) -> list[str]:
    """Return the sentence, row or item that is nearest to the question, and the lines around it where there is room."""
    units = passage.units
    at = units.index(passage.quote)
    best = wrap(" ".join(passage.quote.split()), width - 5, max_lines=_LINES, placeholder=" …")
    before = [" ".join(units[at - 1].split())] if at and len(best) < _LINES else []
    after = [" ".join(units[at + 1].split())] if at + 1 < len(units) and len(best) + len(before) < _LINES else []
    clipped = [[f"{text[: width - 6]} …" if len(text) > width - 5 else text for text in one] for one in (before, after)]
    return [
        *(f"    {line}" for line in clipped[0]),
        *(f"  > {line}" for line in best),
        *(f"    {line}" for line in clipped[1]),
    ]


def _take(found: Labelling, reply: str, shown: list[Found]) -> bool:
    """Write what was typed as labels; return whether anything was.

    Raises:
        ConfigError: if it names something else, or 0 beside others.
    """
    from rag_lab.errors import ConfigError

    typed = reply.replace(",", " ").split()
    quotes = {str(n): (n, passage.quote) for n, passage in enumerate(shown, start=1)}
    quotes |= {f"{n}.{m}": (n, text) for n, one in enumerate(shown, start=1) for m, text in enumerate(one.units, 1)}
    if typed == ["0"]:
        found.no_answer()
    elif unknown := [one for one in typed if one not in quotes]:
        raise ConfigError(
            f"{unknown[0]!r:.60} names nothing here: type numbers from 1 to {len(shown)}, as 2, or 2.3 for a sentence "
            "of the second passage, or 0 alone."
        )
    for number, quote in (quotes[one] for one in typed if one != "0"):
        found.take(number, quote)
    return bool(typed)
