"""`rag-lab demo`, `sweep`, `plan`, `run` and `vary`: experiments of a file, and of a command line; and `worker`."""

import os
import shlex
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_lab.cli import completion, shell
from rag_lab.cli import shared_options as shared
from rag_lab.cli.shared_options import DEFAULT_DATASET
from rag_lab.errors import ConfigError, RagLabError
from rag_lab.redaction import redact_value

if TYPE_CHECKING:
    from rag_lab.experiment.new_project import Asked


DEMO = "experiments/decisive.yaml"
Labelled = Annotated[str, typer.Option(autocompletion=completion.datasets)]
Base = Annotated[str | None, typer.Option(metavar="PRESET", autocompletion=completion.presets)]
Metrics = Annotated[list[str] | None, typer.Option(metavar="NAME[,NAME]", autocompletion=completion.metrics)]
Judge = Annotated[str | None, typer.Option(metavar="PROVIDER:NAME")]
Questions = Annotated[int | None, typer.Option(min=1)]
Answers = Annotated[int | None, typer.Option(min=0)]
_NO_ANSWERS = (
    "No answers are generated (answer.name=none), since no metric reads them; name one that does, as answer.abstention."
)


def demo(out: Path | None = None, jobs: shared.Jobs = "auto", yes: shared.Yes = False) -> None:
    """Run the demo: six changes to a pipeline, one at a time."""
    from rag_lab.experiment.config import checkout_file

    try:
        experiment = checkout_file(DEMO)
    except RagLabError:
        raise RagLabError(
            "The demo's documents and questions are not part of the installed package: run it in a checkout, "
            'or begin with your own documents: rag-lab ask "..." --dataset FOLDER'
        ) from None
    from rag_lab.cli.execute import RunOptions, as_jobs, plan, run_with_status

    with _kernels_ahead(experiment, out):
        run = run_with_status(plan(experiment), out, RunOptions(as_jobs(jobs), check=False), yes=yes)
    # A small model's unreadable reply is a finding, which the report counts; a variant that failed is a fault.
    if any(state["status"] == "failed" for state in run.manifest()["variants"].values()):
        raise typer.Exit(1)


def sweep(
    experiment: shared.ExperimentFile,
    out: Path | None = None,
    jobs: shared.Jobs = "auto",
    executor: str = "local",
    slurm: shared.Slurm = None,
    cold: shared.Cold = False,
    cell_minutes: shared.CellMinutes = 24 * 60,
    check: shared.Check = None,
    keep_going: shared.KeepGoing = False,
    retry_failed: shared.RetryFailed = False,
    dry_run: shared.DryRun = False,
    settings: shared.Settings = None,
    only: Annotated[list[str] | None, typer.Option(metavar="VARIANT", autocompletion=completion.variants)] = None,
    questions: Annotated[str, typer.Option(metavar="N|+N")] = "",
    yes: shared.Yes = False,
) -> None:
    """Run every variant of an experiment, write one report."""
    from rag_lab.cli.execute import RunOptions, as_jobs, plan, start

    wants_kernels = executor == "local" and not cold and not dry_run
    with _kernels_ahead(experiment, out) if wants_kernels else nullcontext():
        options = RunOptions(
            as_jobs(jobs, least=0 if executor == "workers" else 1),
            executor,
            cold,
            cell_minutes,
            slurm=shared.parse_slurm(slurm or []),
            check=check,
            keep_going=keep_going,
            retry_failed=retry_failed,
        )
        planned = plan(experiment, settings=shared.parse_settings(settings or []), only=only or [], questions=questions)
        start(planned, out, options, dry_run, yes=yes)


def _kernels_ahead(experiment: Path, out: Path | None) -> AbstractContextManager[object]:
    """Prepare kernels from now on, unless the run folder looks finished; without any the block works as well."""
    from rag_lab._kit.config_file import read_yaml
    from rag_lab.experiment.executors.local import prepared
    from rag_lab.experiment.run import MADE_FILE

    folder = out
    if folder is None:
        with suppress(RagLabError, OSError, LookupError, TypeError):  # a wrong file is an error of its plan
            folder = Path("results") / str(read_yaml(experiment)["name"])
    if folder is None or (folder / MADE_FILE).is_file():
        return nullcontext()
    # What kernels and the report need is imported once, before the fork.
    import_module("pyarrow.parquet")
    import_module("rag_lab.report.study_tables")
    return prepared(from_here=shell.is_whole_process)


def plan_(
    experiment: shared.ExperimentFile,
    runs: Annotated[list[Path] | None, typer.Option("--from", metavar="RUN", autocompletion=completion.runs)] = None,
    pilot: int | None = None,
    jobs: shared.Jobs = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
    yes: shared.Yes = False,
) -> None:
    """Say how many questions an experiment needs, before it is run."""
    from rag_lab.cli.execute import RunOptions, as_jobs, plan, run_with_status, start
    from rag_lab.experiment.forecast.power_forecast import pilot_of_experiment, power_forecast, power_text, runs_of
    from rag_lab.statistics.non_inferiority import LEAST_QUESTIONS

    if pilot is not None and pilot < LEAST_QUESTIONS:
        raise RagLabError(
            f"--pilot is {pilot}: by so few questions nobody can tell how much variants differ; give {LEAST_QUESTIONS} "
            "or more."
        )
    checked = plan(experiment)
    if pilot is not None:
        small = plan(pilot_of_experiment(checked.experiment, pilot), folder=checked.folder)
        options = RunOptions(as_jobs(jobs))
        if dry_run:
            start(small, None, options, dry_run)
            return
        run_with_status(small, None, options, yes=yes)
    needed = power_text(power_forecast(checked, runs_of(checked, runs or [])), f"rag-lab plan {experiment}")
    typer.echo(needed or "Nothing is compared that could be planned: one variant, no quality metric, or a race.")
    shell.next_steps(f"rag-lab sweep {shlex.quote(str(experiment))} --dry-run   what it would run, and cost")


def run(
    dataset: Labelled = DEFAULT_DATASET,
    base: Base = None,
    settings: shared.Settings = None,
    metrics: Metrics = None,
    questions: Questions = None,
    answers: Answers = None,
    judge: Judge = None,
    out: Path | None = None,
    dry_run: shared.DryRun = False,
    yes: shared.Yes = False,
) -> None:
    """Run one pipeline on a data set, print its scores."""
    from rag_lab.cli.execute import RunOptions, plan, start
    from rag_lab.experiment.new_project import run_name

    asked = _asked(dataset, base, settings, metrics, questions=questions, answers=answers, judge=judge)
    experiment = asked.experiment()
    checked = plan({"name": run_name(asked.name, experiment), **experiment})
    if asked.leaves_out_answers:
        typer.echo(_NO_ANSWERS, err=True)
    start(checked, out, RunOptions(), dry_run, scores=True, yes=yes)


def vary(
    factors: Annotated[list[str], typer.Argument(metavar="KEY=VALUE,VALUE...", autocompletion=completion.factors)],
    dataset: Labelled = DEFAULT_DATASET,
    base: Base = None,
    settings: shared.Settings = None,
    metrics: Metrics = None,
    questions: Questions = None,
    answers: Answers = None,
    judge: Judge = None,
    design: Annotated[str, typer.Option(autocompletion=lambda: completion.DESIGNS)] = "one_factor",
    n: Annotated[int | None, typer.Option("-n", min=2)] = None,
    out: Path | None = None,
    jobs: shared.Jobs = "auto",
    dry_run: shared.DryRun = False,
    yes: shared.Yes = False,
) -> None:
    """Run a sweep without a file, which it writes."""
    from rag_lab.cli.execute import RunOptions, as_jobs, plan, start
    from rag_lab.experiment.new_project import file_for, write_file

    of_design: dict[str, Any] = {"factors": parse_factors(factors), "design": design, "n": n}
    of_answers: dict[str, Any] = {"questions": questions, "answers": answers, "judge": judge}
    asked = _asked(dataset, base, settings, metrics, **of_design, **of_answers)
    experiment = asked.experiment()
    path = file_for(asked.name, experiment)
    whole = {"name": path.stem, **experiment}
    checked = plan(whole, folder=path.parent)
    if asked.leaves_out_answers:
        typer.echo(_NO_ANSWERS, err=True)
    if dry_run:
        typer.echo(f"Nothing is written yet; the experiment will be {path}.", err=True)
    else:
        write_file(path, whole, shell.command_line())
        typer.echo(f"Experiment: {path} (change it, and run it by `rag-lab sweep {path}`)", err=True)
    start(checked, out, RunOptions(as_jobs(jobs)), dry_run, yes=yes)


def parse_factors(factors: Iterable[str]) -> dict[str, list[Any]]:
    """Return dotted keys and their values; `rerank.final_k=3,5` gives two numbers."""
    from rag_lab._kit.config_file import parse_yaml

    found: dict[str, list[Any]] = {}
    problems = []
    for factor in factors:
        key, _, listed = factor.partition("=")
        try:
            values = parse_yaml(f"[{listed}]")
        except ValueError:
            values = []
        if not key.strip() or not values:
            problems.append(f"{redact_value(factor)!r} is no setting with values; write, say, rerank.final_k=3,5")
        elif key.strip() in found:
            problems.append(f"{key.strip()} is given twice; write all of its values after one =")
        else:
            found[key.strip()] = values
    if problems:
        raise ConfigError("; ".join(problems))
    if all(len(values) == 1 for values in found.values()):
        given = " ".join(f"{key}={values[0]}" for key, values in found.items())
        raise ConfigError(f"{redact_value(given)!r} varies nothing; give two values or more, as in rerank.final_k=3,5")
    return found


def _asked(
    dataset: str, base: str | None, settings: list[str] | None, metrics: list[str] | None, **more: Any
) -> "Asked":
    """Return what a command line asks for, with what is measured where it does not say."""
    from rag_lab.evaluation.registry import split_names
    from rag_lab.experiment.new_project import Asked, usual_metrics

    changes = shared.parse_settings(settings or [])
    names = [name for text in metrics or () for name in split_names(text)] or usual_metrics(dataset)
    return Asked(dataset, base, changes, metrics=names, **more)


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
        with shell.stopped_in_order(), model_host() as shared:  # a scheduler that wants its machine back sends SIGTERM
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
