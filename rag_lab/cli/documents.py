"""`rag-lab index`, `profile`, `questions` and `datasets`: documents, what they are like, and questions about them."""

import json
import shlex
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from rag_lab.cli import completion
from rag_lab.cli.shared_options import DryRun, Settings, open_pipeline, parse_settings
from rag_lab.cli.shell import next_steps, stopped_in_order
from rag_lab.errors import ConfigError
from rag_lab.redaction import visible_json

_NAMED_CHANGES = 20
_ASKS_FROM = 20  # calls
questions_app = typer.Typer(help="Draft questions from documents.", no_args_is_help=True, rich_markup_mode=None)
questions_app.callback()(lambda: None)  # without a callback, a group of one command would be that command
app = typer.Typer(help="List, check and import datasets.", no_args_is_help=True, rich_markup_mode=None)


def index(
    dataset: Annotated[str, typer.Argument(autocompletion=completion.datasets)],
    settings: Settings = None,
    list_: Annotated[bool, typer.Option("--list")] = False,
    remove: Annotated[list[str] | None, typer.Option(metavar="SOURCE")] = None,
) -> None:
    """Split and embed the documents of a dataset, or of any folder."""
    from rag_lab.corpus.folder import list_files
    from rag_lab.corpus.rules import removing
    from rag_lab.data.dataset import corpus_folder, find_dataset

    guard: AbstractContextManager[None] = nullcontext()
    if remove:
        corpus_dir = corpus_folder(find_dataset(dataset))
        guard = removing(corpus_dir, remove, list_files(corpus_dir, None).files)
    with guard:
        found = open_pipeline(dataset, settings).index
    for name in ("added", "changed", "removed"):
        if sources := getattr(found.changes, name):
            more = ", ..." * (len(sources) > _NAMED_CHANGES)
            typer.echo(f"{name} {len(sources)}: {', '.join(sources[:_NAMED_CHANGES])}{more}")
    for file in found.files if list_ else ():
        whose = [f"namespace {file.attributes.namespace}"] if file.attributes.namespace else []
        whose += [f"seen by {', '.join(file.attributes.permissions)}"] if file.attributes.permissions else []
        sizes = f"{file.n_documents:>5} documents {file.n_parents:>6} parents {file.n_children:>6} children"
        typer.echo("  ".join([file.sha256[:12], sizes, f"{file.modified[:10]:10}", file.source, *whose]))
    counts, language = found.manifest, found.language()
    typer.echo(
        f"{dataset}: {counts.n_files} files, {counts.n_documents} pages and unpaged files, {counts.n_parents} parents, "
        f"{counts.n_children} children{language and f' in {language}'}, {len(found.problems)} problems"
    )
    for problem in found.problems:
        typer.echo(f"  {problem}", err=True)
    same = "".join(f" --set {shlex.quote(setting)}" for setting in settings or ())
    next_steps(f'rag-lab ask "..." --dataset {shlex.quote(dataset)}{same}   asks these documents')


def ingest(
    connectors: Annotated[Path, typer.Argument(metavar="CONNECTORS.yaml")],
    follow: Annotated[bool, typer.Option("--follow")] = False,
    index_: Annotated[bool, typer.Option("--index")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
    status: Annotated[bool, typer.Option("--status")] = False,
    settings: Settings = None,
) -> None:
    """Keep a corpus equal to what its sources hold."""
    import threading

    from tqdm.auto import tqdm

    from rag_lab.sources.config import read_connectors
    from rag_lab.sources.follow import ingest as look_at_all
    from rag_lab.sources.ingestion import Ingestion
    from rag_lab.sources.source import Pass

    folder, listed = read_connectors(connectors)
    where, stop, shown = shlex.quote(str(folder)), threading.Event(), set[str]()
    pipeline: Any = None
    if status:
        for name, stands in Ingestion(folder, listed).status().items():
            absent = "" if any(name == each.name for each in listed) else f"; no longer in {connectors.name}"
            typer.echo(f"{stands}{absent}")
        return

    def tell(found: Pass) -> None:
        nonlocal pipeline
        news = bool(found.new or found.changed or found.gone or found.failure)
        if news or not follow:
            typer.echo(str(found))
        for sentence in (text for text in found.problems.values() if text not in shown):
            shown.add(sentence)
            typer.echo(f"  {sentence}", err=True)
        if index_ and (news or not pipeline) and not dry_run and any((folder / "corpus").rglob("*.*")):
            pipeline = pipeline.after(ingestion.files) if pipeline else open_pipeline(str(folder), settings)
            pipeline.index.ensure_vectors()
            ingestion.files.clear()

    with tqdm(desc="ingesting", unit="key", disable=None) as bar, stopped_in_order(stop.set):
        ingestion = Ingestion(folder, listed, bar.update)
        with nullcontext() if dry_run else ingestion.writing():
            found = look_at_all(ingestion, follow, tell, stop, dry_run)
    if down := [each.source for each in found if each.failure]:
        typer.echo(f"Down: {', '.join(down)}; the corpus keeps what it knew of them.", err=True)
        raise typer.Exit(1)
    if not dry_run:
        next_steps(f'rag-lab ask "..." --dataset {where}   asks what the sources hold now')


def profile(
    dataset: Annotated[str, typer.Argument(autocompletion=completion.datasets)],
    settings: Settings = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE")] = None,
) -> None:
    """Say what a corpus is like, and what to set for it and why."""
    from rag_lab.config import PipelineConfig
    from rag_lab.corpus_profile.corpus_profile import profile as of_corpus
    from rag_lab.data.dataset import is_dataset
    from rag_lab.notebook.views.data_view import profile_page

    found = of_corpus(dataset, PipelineConfig().override(parse_settings(settings or [])))
    typer.echo(str(found))
    if html:
        _write(html, profile_page(found))
    where = shlex.quote(found.folder)
    if not is_dataset(Path(found.folder)):
        next_steps(f"rag-lab new mine {where}   a folder to experiment in, with these settings")
    elif found.to_try:
        factors = " ".join(f"{key}={','.join(map(str, values))}" for key, values in found.to_try.items())
        next_steps(f"rag-lab vary {factors} --dataset {where}   what only a comparison can tell")


@questions_app.command()
def draft(
    folder: Path,
    model: Annotated[str | None, typer.Option(show_default=False)] = None,
    reader: Annotated[str | None, typer.Option(show_default=False)] = None,
    n: Annotated[int, typer.Option(min=1, max=10_000)] = 100,
    out: Path | None = None,
    by_hand: Annotated[bool, typer.Option("--by-hand")] = False,
    prompt: Annotated[str, typer.Option(metavar="FILE.j2")] = "builtin",
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", "-y")] = False,
    settings: Settings = None,
) -> None:
    """Draft questions about documents, and let those fall that are of no use."""
    from rag_lab.data.dataset import corpus_folder, is_dataset
    from rag_lab.experiment.new_project import new_project
    from rag_lab.models.shared import KEY, better_model, chat_model
    from rag_lab.questions import draft_files
    from rag_lab.questions.drafting import Drafting
    from rag_lab.questions.writer import PROMPT, WriteDraft

    advice = better_model().replace(f"--set {KEY}=", "--model ")
    if (model is None) is not by_hand:
        raise ConfigError(f"Name the model that writes by --model, or give --by-hand. {advice}")
    writer = WriteDraft(chat_model(model, WriteDraft.name), PROMPT.read(prompt)) if model else None
    if folder.is_dir() and not is_dataset(folder):
        if out is None:
            raise ConfigError(f"{folder} is no data set yet; give --out mine, which makes one of its documents.")
        is_made = is_dataset(out) and corpus_folder(out).resolve() == folder.resolve()
        folder = out if is_made else folder if dry_run else new_project(out, folder).folder
    drafting = Drafting(open_pipeline(str(folder), settings), n)
    typer.echo(drafting.found_sentence(), err=True)
    dataset, where = drafting.pipeline.dataset, shlex.quote(str(folder))
    if writer is None:
        path = draft_files.write_places(dataset, [place for one in drafting.todo for place in one.places])
        typer.echo(f"{path}: {len(drafting.todo)} places worth asking about; the notebook 05_own_questions asks there.")
        return
    calls = drafting.n_calls()
    listed = ", ".join(f"{name} {count:,}" for name, count in calls.items() if count)
    typer.echo(f"At most {sum(calls.values()):,} calls of {model}: {listed}.", err=True)
    if dry_run:
        return
    if sum(calls.values()) >= _ASKS_FROM and not yes:
        typer.confirm("Begin?", default=True, abort=True, err=True)
    drafted = drafting.draft(writer, chat_model(reader or model, "check"), draft_files.settled(dataset)[2])
    typer.echo(str(drafted))
    if not drafted.n_stood:
        raise ConfigError(
            f"0 of {drafted.n_written} drafts stood; {model} cannot write questions. {advice}; or write them yourself: "
            f"rag-lab questions draft {where} --by-hand"
        )
    draft_files.write_set(dataset, drafted, str(model))
    typer.echo(f"\n{draft_files.GOOD_FOR}")
    next_steps(
        "jupyter lab notebooks/05_own_questions.ipynb   review them, one at a time",
        f"rag-lab datasets check {where}   count and check what there is",
        f"rag-lab run --dataset {where}    score the default pipeline on them",
    )


@app.command("list")
def list_() -> None:
    """List the datasets that are found by name."""
    from rag_lab.data.dataset import list_datasets

    found = list_datasets()
    for name, path in found:
        typer.echo(f"{name}  {path}")
    if not found:
        typer.echo("None below ./datasets or $RAG_LAB_DATASETS; `rag-lab datasets import --help` says how to make one.")


@app.command()
def check(
    dataset: Annotated[str, typer.Argument(autocompletion=completion.datasets)],
    json_path: Annotated[Path | None, typer.Option("--json", metavar="FILE")] = None,
    page: Annotated[Path | None, typer.Option(metavar="FILE")] = None,
) -> None:
    """Count what a dataset holds, and name what is wrong and what is missing."""
    from rag_lab.data.check import check as count
    from rag_lab.data.dataset import Dataset
    from rag_lab.report.page.report_page import dataset_page

    counted = count(Dataset.load(dataset, labelled=False))
    typer.echo(str(counted))
    if json_path:
        _write(json_path, visible_json(json.dumps(counted.to_dict(), ensure_ascii=False, indent=1)))
    if page:
        _write(page, dataset_page(counted))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"Cannot write {path}: {error.strerror}; choose another place.") from None
    typer.echo(f"Written: {path}")


@app.command("import")
def import_(
    source: Path,
    target: Path,
    format: str | None = None,
    force: Annotated[bool, typer.Option("--force")] = False,
    split: str | None = None,
    language: str = "",
) -> None:
    """Make a dataset from another format."""
    from rag_lab.data.formats import import_dataset
    from rag_lab.data.labels import grades_text

    options = {"split": split} if split else {}
    dataset, problems = import_dataset(format, source, target, force=force, language=language, **options)
    typer.echo(f"{dataset.name}: {len(dataset.questions)} questions in {target}, {len(problems)} problems")
    if grades := grades_text(dataset.questions):
        typer.echo(f"  items of {grades}")
    for problem in problems:
        typer.echo(f"  {problem}", err=True)
    next_steps(
        f"rag-lab datasets check {shlex.quote(str(target))}   names what is missing",
        f"rag-lab run --dataset {shlex.quote(str(target))} --questions 40   scores the default pipeline on it",
    )


@app.command()
def export(
    dataset: Annotated[str, typer.Argument(autocompletion=completion.datasets)], target: Path, format: str = "beir"
) -> None:
    """Write a dataset as a BEIR folder."""
    from rag_lab.data.dataset import Dataset
    from rag_lab.data.formats import export_dataset

    problems = export_dataset(Dataset.load(dataset), format, target)
    typer.echo(f"{target}: written{', without what follows:' if problems else ''}")
    for problem in problems:
        typer.echo(f"  {problem}", err=True)
