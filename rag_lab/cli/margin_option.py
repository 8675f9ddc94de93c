"""`--margin METRIC=VALUE`: a margin that somebody gives when a run is over, which is shown as post hoc."""

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
