"""`rag-lab demo`, `plan`, `sweep`: whole experiments."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag_lab.cli import completion
from rag_lab.cli.shared_options import (
    CellMinutes,
    Check,
    Cold,
    DryRun,
    Executor,
    ExperimentFile,
    Jobs,
    KeepGoing,
    Out,
    RetryFailed,
    Settings,
    Slurm,
    Yes,
    parse_settings,
    parse_slurm,
)
from rag_lab.cli.shell import next_steps
from rag_lab.cli.sweeps.execute import kernels_ahead, run_with_status, start
from rag_lab.errors import RagLabError

if TYPE_CHECKING:
    pass

DEMO = "experiments/decisive.yaml"


def demo(out: Out = None, jobs: Jobs = "auto", yes: Yes = False) -> None:
    """Run the demo: five changes to a pipeline, one at a time.

    On packaged data and models it needs no key, no network and no GPU, takes some minutes, and ends with a report to
    open. If it is stopped half-way, start it again and it goes on where it was.
    """
    from rag_lab.experiment.checkout import checkout_file

    try:
        experiment = checkout_file(DEMO)
    except RagLabError:
        raise RagLabError(
            "The demo's documents and questions are not part of the installed package: run it in a checkout, "
            'or begin with your own documents: rag-lab ask "..." --dataset FOLDER'
        ) from None
    with kernels_ahead(experiment, out):
        from rag_lab.experiment.plan import plan
        from rag_lab.experiment.run.run_options import RunOptions, as_jobs

        run = run_with_status(plan(experiment), out, RunOptions(as_jobs(jobs), check=False), yes=yes)
    # A small model's unreadable reply is a finding, which the report counts; a variant that failed is a fault.
    if any(state["status"] == "failed" for state in run.manifest()["variants"].values()):
        raise typer.Exit(1)


def sweep(
    experiment: ExperimentFile,
    out: Out = None,
    jobs: Jobs = "auto",
    executor: Executor = "local",
    slurm: Slurm = None,
    cold: Cold = False,
    cell_minutes: CellMinutes = 24 * 60,
    check: Check = None,
    keep_going: KeepGoing = False,
    retry_failed: RetryFailed = False,
    dry_run: DryRun = False,
    settings: Settings = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VARIANT",
            help="Run this variant and the baseline alone, by the name that --dry-run shows; repeatable.",
            autocompletion=completion.variants,
        ),
    ] = None,
    yes: Yes = False,
) -> None:
    """Run every variant of an experiment, write one report.

    Each variant is one execution of notebooks/02_run_variant.ipynb. Everything is checked before anything runs. A
    variant that fails is reported and its notebook kept; the others go on. Start the same command again to go on after
    a stop: nothing that was computed is computed twice, and what another attempt may cure is tried again.

    Where that costs little beside the rest, two questions go through each variant first; what would fail in all of
    them is said before hours are spent.

    \b
    Examples:
      rag-lab sweep experiments/decisive.yaml --dry-run
      rag-lab sweep experiments/decisive.yaml --jobs 2
      rag-lab sweep my_question.yaml --out results/monday
      rag-lab sweep my_question.yaml --retry-failed
      rag-lab sweep experiments/decisive.yaml --only hyde-always --set corpus.chunk_size=400

    \b
    An experiment file:
      name: reranker_and_hyde
      question: Does classified HyDE still help once a reranker sees the top 20?
      dataset: plant_docs          # a name that `rag-lab datasets list` shows, or a path
      base: presets/laptop.yaml
      factors:                     # the first value of each is the baseline
        query.hyde: [none, always, classified]
        rerank.name: [none, query_likelihood]
      design: grid                 # or one_factor, fractional, random, racing, …, or module:function
      metrics: [retrieval.ndcg@10, ragas.semantic_similarity]
      limits: {questions: 60, answers: 20}
    """
    wants_kernels = executor == "local" and not cold and not dry_run
    with kernels_ahead(experiment, out) if wants_kernels else nullcontext():
        from rag_lab.experiment.plan import plan
        from rag_lab.experiment.run.run_options import RunOptions, as_jobs

        n_jobs = as_jobs(jobs, least=0 if executor == "workers" else 1)
        options = RunOptions(
            n_jobs,
            executor,
            cold,
            cell_minutes,
            slurm=parse_slurm(slurm or []),
            check=check,
            keep_going=keep_going,
            retry_failed=retry_failed,
        )
        start(
            plan(experiment, settings=parse_settings(settings or []), only=only or []), out, options, dry_run, yes=yes
        )


def plan_(
    experiment: ExperimentFile,
    runs: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="RUN",
            help="An earlier run of the same variants, which tells how much questions differ; repeatable.",
            autocompletion=completion.runs,
        ),
    ] = None,
    pilot: Annotated[
        int | None,
        typer.Option(help="First run the experiment on so many questions, into results/<its name>-pilot."),
    ] = None,
    jobs: Jobs = "auto",
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="With --pilot: show what the pilot would run and what it would cost; stop."),
    ] = False,
    yes: Yes = False,
) -> None:
    """Say how many questions an experiment needs, before it is run.

    What questions can show depends on how much variants differ from question to question, not on how many questions
    sound like many. That is read from results/ of the experiment or of its pilot, or from the runs that are given. For
    each comparison it tells the smallest difference that would be found, the chance to show that a variant is not
    worse by more than the margin, the questions that it takes, and what naming fewer variants would buy.

    The answers of a pilot are remembered, so that the sweep after it asks only the other questions.

    \b
    Examples:
      rag-lab plan experiments/decisive.yaml
      rag-lab plan my_question.yaml --from results/last_month
      rag-lab plan my_question.yaml --pilot 40 --dry-run
      rag-lab plan my_question.yaml --pilot 40

    \b
    A margin, in the experiment file, is the largest mean loss that you would accept:
      margin: {retrieval.ndcg@5: 0.05}
    """
    from rag_lab.experiment.forecast.power_forecast import pilot_of_experiment, power_forecast, runs_of
    from rag_lab.experiment.forecast.power_text import power_text
    from rag_lab.experiment.plan import plan
    from rag_lab.experiment.run.run_options import RunOptions, as_jobs
    from rag_lab.statistics.non_inferiority.planning import LEAST_QUESTIONS

    if pilot is not None and pilot < LEAST_QUESTIONS:
        raise RagLabError(
            f"--pilot is {pilot}: by so few questions nobody can tell how much variants differ; give {LEAST_QUESTIONS} "
            "or more."
        )
    checked = plan(experiment)
    if pilot is not None:
        small = plan(pilot_of_experiment(checked.experiment, pilot), folder=checked.folder)
        if dry_run:
            start(small, None, RunOptions(as_jobs(jobs)), dry_run)
            return
        run_with_status(small, None, RunOptions(as_jobs(jobs)), yes=yes)
    needed = power_text(power_forecast(checked, runs_of(checked, runs or [])), f"rag-lab plan {experiment}")
    typer.echo(needed or "Nothing is compared that could be planned: one variant, no quality metric, or a race.")
    next_steps(f"rag-lab sweep {shlex.quote(str(experiment))} --dry-run   what it would run, and cost")


COMMANDS = (demo, plan_, sweep)
