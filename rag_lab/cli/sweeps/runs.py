"""`rag-lab demo`, `plan`, `sweep`, `report`, `export`: whole experiments."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_lab.cli import completion
from rag_lab.cli.finished_run import Margins, WithoutKnown
from rag_lab.cli.set_option import Settings, parse_settings
from rag_lab.cli.shell.next_step import command_line, next_steps, of_run
from rag_lab.cli.sweeps.ahead import kernels_ahead
from rag_lab.cli.sweeps.long_run import Yes, confirm_long
from rag_lab.cli.sweeps.run_options import (
    CellMinutes,
    Check,
    Cold,
    Executor,
    Jobs,
    KeepGoing,
    RetryFailed,
    Slurm,
    parse_slurm,
)
from rag_lab.errors import RagLabError

if TYPE_CHECKING:
    from rag_lab.experiment.plan import Plan
    from rag_lab.experiment.run.run_options import RunOptions
    from rag_lab.runs.run_folder import RunFolder

DEMO = "experiments/decisive.yaml"
Out = Annotated[Path | None, typer.Option(help="The run folder; results/<name of the experiment> where left out.")]
RunDir = Annotated[
    Path,
    typer.Argument(
        help="A run folder, as `rag-lab sweep` writes it.", metavar="RUN_DIR", autocompletion=completion.runs
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Check everything; show what would run and what it would cost; stop.")
]


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
    experiment: Annotated[
        Path,
        typer.Argument(help="The experiment file.", metavar="EXPERIMENT.yaml", autocompletion=completion.experiments),
    ],
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
    experiment: Annotated[
        Path,
        typer.Argument(help="The experiment file.", metavar="EXPERIMENT.yaml", autocompletion=completion.experiments),
    ],
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
    told = power_text(power_forecast(checked, runs_of(checked, runs or [])), f"rag-lab plan {experiment}")
    typer.echo(told or "Nothing is compared that could be planned: one variant, no quality metric, or a race.")
    next_steps(f"rag-lab sweep {shlex.quote(str(experiment))} --dry-run   what it would run, and cost")


def report(
    run: RunDir,
    pdf: Annotated[
        bool, typer.Option("--pdf", help="Print it, too, in three or four pages, by a Chromium of this machine.")
    ] = False,
    one_file: Annotated[
        bool,
        typer.Option("--one-file", help="Keep all questions in report.html, however large it gets, as for a mail."),
    ] = False,
    margins: Margins = None,
    without_known: WithoutKnown = None,
) -> None:
    """Write the report of a run anew.

    It is made from the run's traces and scores alone; no model runs. Where a run has many questions and variants, what
    they did stands in a page a question, in the folder questions/ beside report.html.

    \b
    Examples:
      rag-lab report results/decisive
      rag-lab report results/decisive --pdf
      rag-lab report results/decisive --one-file
      rag-lab report results/decisive --margin retrieval.ndcg@5=0.05
    """
    from rag_lab.report.page.pdf import write_pdf
    from rag_lab.report.page.report_page import write_report
    from rag_lab.runs.margins import parse_margins

    given = parse_margins(margins or [])
    page = write_report(run, one_file=one_file, margins=given, without_known=without_known)
    typer.echo(f"Report: {page}")
    if pdf:
        typer.echo(f"On paper: {write_pdf(page)}")
    of_run(run)


def export(
    run: RunDir,
    target: Annotated[
        Path | None, typer.Argument(help="The new folder; <name of the run>_trec where left out.", metavar="OUT_DIR")
    ] = None,
) -> None:
    """Write what each variant found as TREC's files.

    topics.txt, qrels.txt and a ranking of documents a variant, for ranx, ir_measures, PyTerrier or trec_eval. A
    document is a page of a paged file, and the file otherwise, also where a question's evidence names no page.
    Questions that these files score otherwise than the report are named.

    \b
    Examples:
      rag-lab export results/decisive
      rag-lab export results/decisive for_ranx/decisive
    """
    from rag_lab.experiment.export import export_run
    from rag_lab.experiment.without_file import numbered
    from rag_lab.runs.run_folder import RunFolder

    opened = RunFolder.open(run)
    if target is None:
        target = Path(numbered(f"{opened.path.resolve().name}_trec", lambda name: not Path(name).exists()))
    written, problems = export_run(opened, target)
    typer.echo(f"{target}: topics, qrels and {len(written)} rankings")
    for problem in problems:
        typer.echo(f"  {problem}", err=True)
    for plan in opened.variants:
        if not opened.has_traces(plan.variant_id):
            typer.echo(f"{plan.label} has no traces and was left out.", err=True)


def start(
    checked: Plan, out: Path | None, options: RunOptions, dry_run: bool, scores: bool = False, *, yes: bool = False
) -> None:
    """Run a plan, or only show it; with `scores` they are printed. The exit status is 1 where anything failed."""
    from rag_lab.experiment.run.outputs import failures

    if dry_run:
        from rag_lab.experiment.forecast.describe import describe
        from rag_lab.experiment.forecast.power_forecast import power_forecast, runs_of
        from rag_lab.experiment.forecast.power_text import power_text
        from rag_lab.experiment.run.sweep import post_hoc_margins, to_try_again
        from rag_lab.runs.run_manifest import retry_sentence

        typer.echo(describe(checked))
        if shown := power_text(power_forecast(checked, runs_of(checked, out=out))):
            typer.echo(f"\n{shown}")
        for sentence in filter(None, (post_hoc_margins(checked, out), retry_sentence(to_try_again(checked, out)))):
            typer.echo(f"\n{sentence}")
        next_steps(f"{command_line(without='--dry-run')}   runs it")
    elif failures(run_with_status(checked, out, options, scores, yes=yes)):
        raise typer.Exit(1)


def run_with_status(
    checked: Plan, out: Path | None, options: RunOptions, scores: bool = False, *, yes: bool = False
) -> RunFolder:
    """Run a plan; say before what it cannot measure, and after what failed, what it cost, and what can be done now."""
    from rag_lab.comparison.findings.search_sentences import race_sentences
    from rag_lab.experiment.forecast.cost_text import spent_text
    from rag_lab.experiment.forecast.describe import counted_truncations, cut_off_sentences, not_applicable_sentences
    from rag_lab.experiment.forecast.spending import spending_rows
    from rag_lab.experiment.run.outputs import failures
    from rag_lab.experiment.run.sweep import run_plan
    from rag_lab.models.toy_note import toy_note
    from rag_lab.runs.omissions import asked_sentence
    from rag_lab.runs.race_record import cost_of, read_race
    from rag_lab.runs.run_manifest import FAILOVER_KEY, answering_models

    left_out = [asked_sentence(len(checked.questions), checked.left_out)] if checked.left_out else []
    known = (*cut_off_sentences(checked), *not_applicable_sentences(checked), *counted_truncations(checked))
    for notice in (*left_out, *checked.expansion.notices, *known):
        typer.echo(notice, err=True)
    confirm_long(checked, yes)
    try:
        with _stopped_in_order():
            run = run_plan(checked, out, options)
    except KeyboardInterrupt:
        typer.echo(f"\nStopped. Start it again and it goes on where it was: {command_line()}", err=True)
        raise typer.Exit(130) from None
    for sentence in failures(run):
        typer.echo(sentence, err=True)
    answering = {v.config.models.generation for v in checked.variants if v.config.answer.asks_model}
    played = [state.get(FAILOVER_KEY) or {} for state in run.manifest()["variants"].values()]
    wrote = {name for spec in answering for name in answering_models(spec, played)}
    for note in sorted({toy_note(name, "the answers of this run") for name in wrote} - {""}):
        typer.echo(note, err=True)
    typer.echo(f"{spent_text(run) if spending_rows(run) else 'No chat model was called.'}\n")
    if (race := read_race(run.path)) and not race.stopped:
        typer.echo("\n".join(race_sentences(race, cost_of(run))) + "\n")
    if scores:
        typer.echo(_scores(run))
    for name in ("report.html", "report.md"):
        if (run.path / name).is_file():
            typer.echo(f"Report: {run.path / name}")
    of_run(run.path)
    return run


@contextmanager
def _stopped_in_order() -> Iterator[None]:
    """Let a request to end, or the end of the terminal, stop the block as Ctrl-C does; nohup's wish is kept."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    ends = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) is signal.SIG_DFL]
    try:
        for one in ends:
            signal.signal(one, stop)
        yield
    finally:
        for one in ends:
            signal.signal(one, signal.SIG_DFL)


def _scores(run: RunFolder) -> str:
    from rag_lab.report.text.compare_text import compare_screen

    return compare_screen(run.path)


COMMANDS = (demo, plan_, sweep, report, export)
