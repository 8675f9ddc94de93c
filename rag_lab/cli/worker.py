"""`rag-lab worker`: takes variants of a sweep that runs on many machines."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from rag_lab.cli import completion
from rag_lab.cli.shell import stopped_in_order


def worker(
    run: Annotated[
        str,
        typer.Argument(
            help="The run folder, where it is seen from here, or the run's name in the store.", metavar="RUN"
        ),
    ],
    dataset: Annotated[
        str,
        typer.Option(
            help="The data set on this machine; found by the path or the name it has there, where left out.",
            autocompletion=completion.datasets,
        ),
    ] = "",
    beside: Annotated[
        str, typer.Option(help="The experiment's folder on this machine, where it names modules of your own.")
    ] = "",
    jobs: Annotated[int, typer.Option(min=1, max=256, help="Variants that run at the same time on this machine.")] = 1,
    idle_minutes: Annotated[
        float, typer.Option(min=0, help="For how many minutes to wait for work where there is none.")
    ] = 0.5,
) -> None:
    """Take variants of a sweep, until none is left.

    Start it on any machine, and as often as you like, that has the same version and data set and sees the same store:
    by RAG_LAB_STORE=postgresql://… or, on one machine, the same RAG_LAB_HOME. What a worker computes that is stopped or
    killed is lost only as far as it was not stored; another takes its variant.
    """
    from rag_lab.experiment.executors.job_queue import take_variants
    from rag_lab.experiment.executors.launchers import worker_command
    from rag_lab.models.hosted import host_folder, model_host
    from rag_lab.runs.run_folder import known_name

    name = known_name(Path(run)) or run
    more = ["--dataset", dataset, "--beside", beside, "--idle-minutes", str(idle_minutes)]
    try:
        with stopped_in_order(), model_host() as shared:  # a scheduler that wants its machine back sends SIGTERM
            os.environ.update(shared if host_folder() is None else {})
            with _others(worker_command(name, *more), jobs - 1):
                n_done = take_variants(name, typer.echo, dataset, beside, idle_minutes * 60)
    except KeyboardInterrupt:
        typer.echo("Stopped; what it was at is free for another worker.", err=True)
        raise typer.Exit(130) from None
    typer.echo(f"None is left; {n_done} done here.")


@contextmanager
def _others(command: list[str], n: int) -> Iterator[None]:
    """Run `n` more workers beside the block, and wait for them; they end early where it does."""
    started = [subprocess.Popen(command) for _ in range(n)]  # noqa: S603 - our own command
    try:
        yield
        for one in started:
            one.wait()
    except BaseException:
        for one in started:
            one.terminate()
        raise
