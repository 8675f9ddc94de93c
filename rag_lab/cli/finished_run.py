"""Options of what reads a finished run: a margin that is given late, and questions that are left out of it."""

from __future__ import annotations

from typing import Annotated

import typer

Margins = Annotated[
    list[str] | None,
    typer.Option(
        "--margin",
        metavar="METRIC=VALUE",
        help="How much worse a variant may be and still be left out; repeatable. Given after the run it is shown as "
        "post hoc, and not recorded: declare it as `margin` in the experiment.",
    ),
]
WithoutKnown = Annotated[
    float | None,
    typer.Option(
        "--without-known",
        metavar="SCORE",
        help="Leave out the questions that a closed book (a variant with answer.context=none) answers with this score "
        "or a better one, in the first metric that reads answers: they tell nothing of retrieval.",
    ),
]
