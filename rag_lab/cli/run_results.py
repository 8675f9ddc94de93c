"""`rag-lab status`, `compare`, `labels`, `gate`, `open`, `report`, `export`, `bundle`, `verify`: what a run says."""

from __future__ import annotations

import json
import shlex
import sys
import time
import webbrowser
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_lab._kit.wording import text_table
from rag_lab.cli import completion
from rag_lab.cli.shared_options import Margins, Run, RunDir, WithoutKnown
from rag_lab.cli.shell import next_steps, next_steps_of_run
from rag_lab.errors import RagLabError
from rag_lab.redaction import shown

if TYPE_CHECKING:
    from rag_lab.experiment.sweep_status import SweepStatus

_CLEAR = "\x1b[2J\x1b[H"


def compare(
    run: Run,
    other: Annotated[
        Path | None, typer.Argument(metavar="[RUN]", show_default=False, autocompletion=completion.runs)
    ] = None,
    format: Annotated[str, typer.Option("--format")] = "text",
    correction: str = "max_t",
    pairs: str = "baseline",
    margins: Margins = None,
    without_known: WithoutKnown = None,
    all_: Annotated[bool, typer.Option("--all")] = False,
    table: Annotated[list[str] | None, typer.Option(metavar="NAME", autocompletion=lambda: completion.TABLES)] = None,
) -> None:
    """Compare the variants of a run, or of two runs."""
    from rag_lab.report.compare_text import compare_screen, compare_text
    from rag_lab.runs.human_input import parse_margins

    options = {
        "correction": correction,
        "pairs": pairs,
        "margins": parse_margins(margins or []),
        "without_known": without_known,
    }
    if format == "text" and not all_ and not table:
        typer.echo(compare_screen(run, other, **options), nl=False)
        both = " ".join(shlex.quote(str(path)) for path in (run, other) if path)
        next_steps(f"rag-lab compare {both} --all   every sentence and table", f"rag-lab open {shlex.quote(str(run))}")
    else:
        typer.echo(compare_text(run, other, format, table or (), **options), nl=False)


def open_(
    run: Run,
    port: Annotated[int, typer.Option(min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser")] = True,
) -> None:
    """Show the report of a run in the browser, live."""
    from rag_lab.report.live_report import LiveReport, LiveServer

    with suppress(KeyboardInterrupt), LiveServer(LiveReport(run), port) as server:
        typer.echo(f"{server.report.name}: {server.address}\nOnly this machine can open it. Ctrl-C ends it.")
        if browser:
            Thread(target=webbrowser.open, args=(server.address,), daemon=True).start()
        server.serve_forever()


def report(
    run: RunDir,
    pdf: Annotated[bool, typer.Option("--pdf")] = False,
    one_file: Annotated[bool, typer.Option("--one-file")] = False,
    margins: Margins = None,
    without_known: WithoutKnown = None,
) -> None:
    """Write the report of a run anew."""
    from rag_lab.report.page.report_page import write_pdf, write_report
    from rag_lab.runs.human_input import parse_margins

    page = write_report(run, one_file=one_file, margins=parse_margins(margins or []), without_known=without_known)
    typer.echo(f"Report: {page}")
    if pdf:
        typer.echo(f"On paper: {write_pdf(page)}")
    next_steps_of_run(run)


def export(run: RunDir, target: Annotated[Path | None, typer.Argument(metavar="OUT_DIR")] = None) -> None:
    """Write what each variant found as TREC's files."""
    from rag_lab.experiment.bundle import export_run
    from rag_lab.experiment.new_project import numbered
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


def bundle(
    run: RunDir,
    target: Annotated[Path | None, typer.Argument(metavar="FILE")] = None,
    documents: Annotated[bool, typer.Option("--documents")] = False,
) -> None:
    """Write a run as one file that a stranger can check."""
    from rag_lab.experiment import bundle as bundles

    path = bundles.bundle(run, target, documents=documents)
    texts = "with" if documents else "without"
    typer.echo(f"{path}: {path.stat().st_size / 1e6:,.1f} MB, {texts} the texts of documents")
    next_steps(f"rag-lab verify {shlex.quote(str(path))}   here, or on another machine")


def verify(file: Annotated[Path, typer.Argument(metavar="FILE")]) -> None:
    """Compute all that a bundle says once more."""
    from rag_lab.experiment import bundle as bundles

    found = bundles.verify(file)
    typer.echo(shown(str(found)))
    if not found.agrees:
        raise typer.Exit(1)


def gate(run: Run, against: Annotated[Path, typer.Option(autocompletion=completion.runs)]) -> None:
    """Fail where a run is reliably worse than an earlier one."""
    from rag_lab.comparison.across import compare_runs
    from rag_lab.report.gate import Gate

    found = Gate(compare_runs(against, run))
    parts = ["\n".join(found.sentences), *(table.to_text() for table in found.tables() if table.rows)]
    typer.echo(shown("\n\n".join(parts)))
    if not found.passes:
        raise typer.Exit(1)


def status(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", autocompletion=completion.runs)] = None,
    watch: Annotated[bool, typer.Option("--watch")] = False,
    every: Annotated[float, typer.Option(min=0.2, max=3600)] = 2.0,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """Say how a run stands: stage, calls, money and minutes left."""
    from rag_lab.experiment.sweep_status import sweep_status

    if run is None:
        _list(as_json, watch)
        return
    try:
        while True:
            found = sweep_status(run)
            if as_json:
                typer.echo(json.dumps(to_json(found), indent=None if watch else 2, ensure_ascii=False))
            else:
                if watch and sys.stdout.isatty() and sys.__stdout__ is not None:
                    sys.__stdout__.write(_CLEAR)  # ours, so it goes around the door that shows escape sequences
                typer.echo(str(found))
            if not watch or found.state != "running":
                break
            time.sleep(every)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if not found.is_well:
        raise typer.Exit(1)


def _list(as_json: bool, watch: bool) -> None:
    """Say how all runs in `results/` stand, the one that was started last first."""
    from rag_lab.experiment.sweep_status import sweep_status
    from rag_lab.runs.run_folder import PLAN_FILE

    paths = sorted(map(Path, completion.runs()), key=lambda path: -(path / PLAN_FILE).stat().st_mtime)
    if watch:
        named = str(paths[0]) if paths else "results/NAME"
        raise RagLabError(f"--watch shows one run: name it, as `rag-lab status {named} --watch`.")
    rows: list[tuple[str, ...]] = []
    for path in paths:
        try:
            found = sweep_status(path)
            ended = sum(one.state not in ("waiting", "running") for one in found.variants)
            rows.append((str(path), found.state, f"{ended} of {len(found.variants)}", found.said))
        except RagLabError as error:
            rows.append((str(path), "damaged", "", str(error)))
    header = ("run", "stands", "variants", "said")
    if as_json:
        typer.echo(json.dumps([dict(zip(header, row, strict=True)) for row in rows], indent=2, ensure_ascii=False))
    else:
        typer.echo(text_table(header, rows) if rows else "There are no runs in results/ here.")


def to_json(found: SweepStatus) -> dict[str, Any]:
    """Return a run's status as JSON values."""
    return {
        **asdict(found),
        "path": str(found.path),
        "calls": found.calls,
        "cost_usd": found.cost_usd,
        "is_well": found.is_well,
        "rounds": [to_json(one) for one in found.rounds],
    }


labels_app = typer.Typer(help="People's ratings of answers.", no_args_is_help=True, rich_markup_mode=None)


@labels_app.command()
def ask(
    run: RunDir,
    n: Annotated[int, typer.Option(min=2, max=10_000)] = 30,
    variants: Annotated[str | None, typer.Option(metavar="B,A", show_default=False)] = None,
) -> None:
    """Draw the answers whose ratings narrow the main comparison most."""
    from rag_lab.comparison.blind_trials import labelled_pair
    from rag_lab.comparison.comparison import read_comparison
    from rag_lab.errors import ConfigError, unknown_name
    from rag_lab.runs.human_input import ASKED_FILE
    from rag_lab.runs.run_folder import write_json

    comparison = read_comparison(run)
    by_letter = {code: variant for variant, code in comparison.codes.items()}
    letters = [name.strip() for name in variants.split(",")] if variants else []
    if unknown := [letter for letter in letters if letter not in by_letter]:
        raise ConfigError(unknown_name("letter of a variant", unknown[0], by_letter))
    if letters and len({*letters}) != 2:
        raise ConfigError(f"--variants takes two different letters, as B,A; got {variants!r}.")
    pair = labelled_pair(comparison, (by_letter[letters[0]], by_letter[letters[1]]) if letters else None)
    asked = pair.ask(n)
    if not asked.answers:
        raise ConfigError("No answer can be rated: both variants gave the same answers, or none.")
    write_json(comparison.run.path / ASKED_FILE, asked)
    drawn = pair.strata[[*dict.fromkeys(name for name, _ in asked.answers)]].value_counts()
    both = " and ".join(map(comparison.called, pair.pair))
    typer.echo(f"{len(asked.answers)} answers, by which {both} are compared; the judge: {pair.metric or 'none'}.")
    for name, count in pair.strata.value_counts().items():
        typer.echo(f"  {name:<13} {drawn.get(name, 0):>4} of {count:,} questions")
    next_steps(
        f"rag-lab open {run}     'Rate answers' in its corner",
        f"rl.rate({str(run)!r}, n={n})     the same in a notebook",
    )


@labels_app.command()
def merge(run: RunDir, files: list[Path]) -> None:
    """Put other people's ratings to those of a run, each once; its report and `compare` then count them."""
    from rag_lab.comparison.comparison import read_comparison
    from rag_lab.runs.human_input import merge_labels

    comparison = read_comparison(run)
    n, problems = merge_labels(comparison.run.path, files)
    typer.echo(f"{n} new ratings.")
    for sentence in problems:
        typer.echo(f"  {sentence}", err=True)
    if comparison.rated is not None:
        typer.echo("\n".join(comparison.rated.sentences))
    next_steps(f"rag-lab compare {run} --table labels   judge, labels, and both")
