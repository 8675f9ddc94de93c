"""A plan is run, or only shown: what is printed before, while and after.

Loads the whole of `experiment`, so commands import it when they run.
"""

import sys
from pathlib import Path

import typer

from rag_lab.cli.shell import command_line, next_steps, next_steps_of_run, stopped_in_order
from rag_lab.comparison.findings.search_sentences import race_sentences
from rag_lab.experiment.forecast import caveats, cost_estimate
from rag_lab.experiment.plan import Plan, plan
from rag_lab.experiment.run import sweep
from rag_lab.experiment.run.outputs import failures
from rag_lab.experiment.run.run_options import RunOptions, as_jobs
from rag_lab.models.shared import small_model_note
from rag_lab.runs.omissions import asked_sentence
from rag_lab.runs.run_folder import RunFolder
from rag_lab.runs.run_manifest import FAILOVER_KEY, answering_models, cost_of, read_race, retry_sentence

__all__ = ["RunOptions", "as_jobs", "plan", "run_with_status", "start"]  # what commands need, by one import
LONG_MINUTES = 2


def start(
    checked: Plan, out: Path | None, options: RunOptions, dry_run: bool, scores: bool = False, *, yes: bool = False
) -> None:
    """Run a plan, or only show it; with `scores` they are printed. The exit status is 1 where anything failed."""
    if dry_run:
        from rag_lab.experiment.forecast import describe, power_forecast

        typer.echo(describe.describe(checked))
        expected = power_forecast.power_forecast(checked, power_forecast.runs_of(checked, out=out))
        if shown := power_forecast.power_text(expected):
            typer.echo(f"\n{shown}")
        for sentence in (sweep.post_hoc_margins(checked, out), retry_sentence(sweep.to_try_again(checked, out))):
            if sentence:
                typer.echo(f"\n{sentence}")
        next_steps(f"{command_line(without='--dry-run')}   runs it")
    elif failures(run_with_status(checked, out, options, scores, yes=yes)):
        raise typer.Exit(1)


def run_with_status(
    checked: Plan, out: Path | None, options: RunOptions, scores: bool = False, *, yes: bool = False
) -> RunFolder:
    """Run a plan; say before what it cannot measure, and after what failed, what it cost, and what can be done now.

    Without `yes`, who sits at a terminal is asked before what takes long.
    """
    left_out = [asked_sentence(len(checked.questions), checked.left_out)] if checked.left_out else []
    found, unmeasured = caveats.truncations_of(checked), caveats.not_applicable_sentences(checked)
    # Where the sweep refuses what is cut, it says so itself, and does not start.
    cut = [] if caveats.refusals(found, checked) else caveats.truncation_sentences(found, checked)
    notices = (*left_out, *checked.expansion.notices, *caveats.cut_off_sentences(checked), *unmeasured, *cut)
    for notice in notices:
        typer.echo(notice, err=True)
    asks = not yes and sys.stdin.isatty() and sys.stderr.isatty()
    minutes, assumed = cost_estimate.minutes_ahead(cost_estimate.estimate(checked)) if asks else (0.0, [])
    why = f" ({'; '.join(assumed)})" if assumed else ""
    question = f"This takes about {minutes:,.0f} minutes{why}. Go on?"
    if minutes > LONG_MINUTES and not typer.confirm(question, default=True, err=True):
        typer.echo("Nothing was run. --dry-run shows what would be, and fewer questions take less.", err=True)
        raise typer.Exit(1)
    try:
        with stopped_in_order():
            run = sweep.run_plan(checked, out, options)
    except KeyboardInterrupt:
        typer.echo(f"\nStopped. Start it again and it goes on where it was: {command_line()}", err=True)
        raise typer.Exit(130) from None
    for sentence in failures(run):
        typer.echo(sentence, err=True)
    answering = {v.config.models.generation for v in checked.variants if v.config.answer.asks_model}
    played = [state.get(FAILOVER_KEY) or {} for state in run.manifest()["variants"].values()]
    wrote = {name for spec in answering for name in answering_models(spec, played)}
    for note in sorted({small_model_note(name, "the answers of this run") for name in wrote} - {""}):
        typer.echo(note, err=True)
    typer.echo(
        f"{cost_estimate.spent_text(run) if cost_estimate.spending_rows(run) else 'No chat model was called.'}\n"
    )
    if (race := read_race(run.path)) and not race.stopped:
        typer.echo("\n".join(race_sentences(race, cost_of(run))) + "\n")
    if scores:
        from rag_lab.report.compare_text import compare_screen

        typer.echo(compare_screen(run.path))
    for name in ("report.html", "report.md"):
        if (run.path / name).is_file():
            typer.echo(f"Report: {run.path / name}")
    next_steps_of_run(run.path)
    return run
