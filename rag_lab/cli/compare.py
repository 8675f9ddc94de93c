"""`rag-lab compare`: what a run says, in the terminal or for a paper; and two runs of the same questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_lab.cli import completion


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
            help="Of p-values for many comparisons. holm: in 95 of 100 runs nothing is called a difference by chance. "
            "bh (Benjamini-Hochberg): 5% of what is called one may be chance, for screening many variants. none."
        ),
    ] = "holm",
    pairs: Annotated[
        str, typer.Option(help="baseline: each variant against the baseline. all: every pair of variants.")
    ] = "baseline",
) -> None:
    """Compare the variants of a run, or of two runs.

    Conclusions in plain sentences; means with intervals and how many questions were scored; differences with a verdict;
    the effect of each module, whether routing pays, noise, complete cases. Two runs are compared on the questions that
    both asked, with what changed between them: data, models, code, packages.

    \b
    Examples:
      rag-lab compare results/ablation
      rag-lab compare results/ablation --format latex > ablation.tex
      rag-lab compare results/ablation --pairs all --correction bh
      rag-lab compare results/monday results/tuesday
    """
    from rag_lab.report.text.compare_text import compare_text

    typer.echo(compare_text(run, other, format, correction, pairs), nl=False)


COMMANDS = (compare,)
