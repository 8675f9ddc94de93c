"""`rag-lab compare`: what a run says, in the terminal or for a paper; and two runs of the same questions."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from rag_lab.cli import completion
from rag_lab.cli.finished_run import Margins, WithoutKnown
from rag_lab.cli.shell.next_step import next_steps


def compare(
    run: Annotated[
        Path,
        typer.Argument(
            help="A run folder, as `rag-lab sweep` writes it.", metavar="RUN", autocompletion=completion.runs
        ),
    ],
    other: Annotated[
        Path | None,
        typer.Argument(
            help="Another run of the same questions.",
            metavar="[RUN]",
            show_default=False,
            autocompletion=completion.runs,
        ),
    ] = None,
    format: Annotated[str, typer.Option("--format", help="text, markdown, latex or csv.")] = "text",
    correction: Annotated[
        str,
        typer.Option(
            help="Of p-values for many comparisons. max_t: in 95 of 100 runs nothing in the family is a false finding. "
            "bh (Benjamini-Hochberg): 5% of what is called one may be chance, for screening many variants. none."
        ),
    ] = "max_t",
    pairs: Annotated[
        str, typer.Option(help="baseline: each variant against the baseline. all: every pair of variants.")
    ] = "baseline",
    margins: Margins = None,
    without_known: WithoutKnown = None,
    all_: Annotated[bool, typer.Option("--all", help="Print every table and sentence, instead of one screen.")] = False,
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Print this table alone; repeatable. scores, differences, order, effects, evidence, gain, front, "
            "routing, noise, coverage, costs, race, failed; of two runs scores, differences, same, changes.",
            autocompletion=completion.tables,
        ),
    ] = None,
) -> None:
    """Compare the variants of a run, or of two runs.

    One screen: means with intervals, variant by metric, and the differences that can be told from chance. --all prints
    the conclusions in plain sentences and every table, as the other formats do. Two runs are compared on the questions
    that both asked, with what changed between them: data, models, code, packages.

    \b
    Examples:
      rag-lab compare results/decisive
      rag-lab compare results/decisive --table effects --table costs
      rag-lab compare results/decisive --format latex > decisive.tex
      rag-lab compare results/decisive --all --pairs all --correction bh
      rag-lab compare results/decisive --margin retrieval.ndcg@5=0.05
      rag-lab compare results/monday results/tuesday
    """
    from rag_lab.report.text.compare_text import compare_screen, compare_text
    from rag_lab.runs.margins import parse_margins

    given = parse_margins(margins or [])
    if format == "text" and not all_ and not table:
        typer.echo(compare_screen(run, other, correction, pairs, given, without_known), nl=False)
        both = " ".join(shlex.quote(str(path)) for path in (run, other) if path)
        next_steps(f"rag-lab compare {both} --all   every sentence and table", f"rag-lab open {shlex.quote(str(run))}")
    else:
        typer.echo(compare_text(run, other, format, correction, pairs, table or (), given, without_known), nl=False)


COMMANDS = (compare,)
