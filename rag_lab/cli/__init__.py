"""The command line, `rag-lab`, a file a group of commands. Heavy libraries are imported inside them: `--help` is quick.

The last room: it may import all others, and none imports it.
"""

import atexit
import gc
import os
import sys

import typer

from rag_lab._kit.home import read_env_files
from rag_lab._kit.machine import room_on_disk
from rag_lab.cli import ask, completion, documents, models, modules, new, run_results, shell, store, sweep
from rag_lab.cli.shell import guarded
from rag_lab.errors import RagLabError

app = typer.Typer(
    name="rag-lab",
    help="Find out which parts of a RAG pipeline earn their keep, on your documents, with your models.",
    epilog="Each command explains itself with --help; `rag-lab --install-completion` lets Tab complete it all.",
    cls=shell.GroupedCommands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.callback()(shell.global_options)
for _command in (
    *(sweep.demo, sweep.plan_, sweep.sweep, sweep.run, sweep.vary, sweep.worker),
    *(run_results.status, run_results.open_, run_results.compare, run_results.report, run_results.export),
    *(run_results.gate, run_results.bundle, run_results.verify),
    *(documents.profile, documents.index, documents.ingest, ask.ask, ask.chat, ask.write),
    *(modules.modules, models.doctor),
):
    app.command(_command.__name__.rstrip("_"))(_command)
app.add_typer(documents.app, name="datasets")
app.add_typer(models.judge_app, name="judge")
app.add_typer(run_results.labels_app, name="labels")
app.add_typer(models.app, name="models")
app.add_typer(new.app, name="new")
app.add_typer(documents.questions_app, name="questions")
app.add_typer(store.app, name="store")
for _app in (app, *(each.typer_instance for each in app.registered_groups)):
    for _known in _app.registered_commands if _app else ():
        _known.cls = shell.CommandWithExamples


def main() -> None:
    """Run the command line; a mistake of the user's is one sentence on stderr and exit status 2.

    Whatever leaves it, of this project or of a library, goes through one door, to the end of the process.
    """
    gc.set_threshold(50_000, 20, 20)  # of Python's 700, 10, 10: imports and reports make very many objects that stay
    atexit.register(gc.freeze)  # the end of the process frees everything, without a search for circles before
    # Two processes with threads of their own for each matrix product wait for each other: ten times as slow, seen.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    shell.is_whole_process = True
    sys.stdout, sys.stderr = guarded(sys.stdout), guarded(sys.stderr)
    try:
        if os.environ.get(completion.VARIABLE) == "complete_bash":
            completion.complete_bash(app)
            return
        with room_on_disk():
            read_env_files()
            app()
    except RagLabError as error:
        typer.echo(f"rag-lab: {error}", err=True)
        sys.exit(2)
