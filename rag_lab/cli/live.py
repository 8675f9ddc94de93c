"""`rag-lab open`: the report of a run in the browser, which follows a sweep while it runs."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Annotated

import typer

from rag_lab.cli import completion


def open_(
    run: Annotated[
        Path,
        typer.Argument(
            help="A run folder, as `rag-lab sweep` writes it.", metavar="RUN", autocompletion=completion.runs
        ),
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where it listens; a free port where 0.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
) -> None:
    """Show the report of a run in the browser, live.

    The page is the one in the run folder; of a run that is not finished it is made of the variants that are, and loads
    itself anew when another one is. It is served to this machine alone, under an address with a token, nothing in the
    run folder is changed, and Ctrl-C ends it.

    \b
    Examples:
      rag-lab open results/decisive
      rag-lab open results/decisive --no-browser --port 8765
    """
    from rag_lab.report.live_report import LiveReport, LiveServer

    with suppress(KeyboardInterrupt), LiveServer(LiveReport(run), port) as server:
        typer.echo(f"{server.report.name}: {server.address}\nOnly this machine can open it. Ctrl-C ends it.")
        if browser:
            Thread(target=webbrowser.open, args=(server.address,), daemon=True).start()
        server.serve_forever()


COMMANDS = (open_,)
