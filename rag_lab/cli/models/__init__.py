"""`rag-lab models`: which models this machine has, what they are, getting more, and trying them; a file a command.

Imports what `cli` may import; `cli` alone imports it.
"""

import typer

from rag_lab.cli.models import check, listing, pull, show

app = typer.Typer(help="List, describe, download and check models.", no_args_is_help=True, rich_markup_mode=None)
app.command("list")(listing.list_)
app.command("pull")(pull.pull)
app.command("show")(show.show)
app.command("check")(check.check)
