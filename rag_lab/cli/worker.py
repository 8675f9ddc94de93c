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
    run: Annotated[str, typer.Argument(metavar="RUN")],
    dataset: Annotated[str, typer.Option(autocompletion=completion.datasets)] = "",
    beside: str = "",
    jobs: Annotated[int, typer.Option(min=1, max=256)] = 1,
    idle_minutes: Annotated[float, typer.Option(min=0)] = 0.5,
) -> None:
    """Take variants of a sweep, until none is left."""
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
