"""`rag-lab datasets`: what can be asked, and where it comes from."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from rag_lab.cli import completion
from rag_lab.cli.shell import next_steps

app = typer.Typer(help="List, check and import datasets.", no_args_is_help=True, rich_markup_mode=None)


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
    dataset: Annotated[
        str, typer.Argument(help="A name, or any folder of documents.", autocompletion=completion.datasets)
    ],
    json_path: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the counts as JSON.")] = None,
    page: Annotated[Path | None, typer.Option(metavar="FILE", help="Write them as an HTML page.")] = None,
) -> None:
    """Count what a dataset holds, and name what is wrong and what is missing.

    \b
    Examples:
      rag-lab datasets check plant_docs
      rag-lab datasets check ~/Documents/manuals
      rag-lab datasets check plant_docs --json check.json --page check.html
    """
    from rag_lab.data.check import check as count
    from rag_lab.data.dataset import Dataset
    from rag_lab.redaction import visible_json
    from rag_lab.report.page.report_page import dataset_page

    counted = count(Dataset.load(dataset, labelled=False))
    typer.echo(str(counted))
    if json_path:
        _write(json_path, visible_json(json.dumps(counted.to_dict(), ensure_ascii=False, indent=1)))
    if page:
        _write(page, dataset_page(counted))


def _write(path: Path, text: str) -> None:
    from rag_lab.errors import DatasetError

    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DatasetError(f"Cannot write {path}: {error.strerror}; choose another place.") from None
    typer.echo(f"Written: {path}")


@app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(help="A BEIR folder, a SQuAD JSON file, or a CSV, JSONL or Parquet table.")],
    target: Annotated[Path, typer.Argument(help="The dataset's new folder, such as datasets/my_data.")],
    format: Annotated[str | None, typer.Option(help="beir, squad or table; guessed where left out.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the dataset that is there.")] = False,
    split: Annotated[str | None, typer.Option(help="Which judgements of a BEIR folder: test, dev or train.")] = None,
    language: Annotated[
        str, typer.Option(help="Of the texts: en, German, ...; BM25 and TF-IDF then take words to their stems.")
    ] = "",
) -> None:
    """Make a dataset from another format.

    \b
    Examples:
      rag-lab datasets import squad.json datasets/my_squad
      rag-lab datasets import scifact/ datasets/scifact --split test --language en
      rag-lab datasets import testset.csv datasets/testset

    A table has RAGAs' columns: user_input, reference, reference_contexts.
    """
    from rag_lab.data.evidence import grades_text
    from rag_lab.data.formats.registry import import_dataset

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
    dataset: Annotated[str, typer.Argument(help="A name or a path.", autocompletion=completion.datasets)],
    target: Annotated[Path, typer.Argument(help="The new folder.")],
    format: Annotated[str, typer.Option(help="beir.")] = "beir",
) -> None:
    """Write a dataset as a BEIR folder.

    \b
    Example:
      rag-lab datasets export plant_docs plant_beir
    """
    from rag_lab.data.dataset import Dataset
    from rag_lab.data.formats.registry import export_dataset

    problems = export_dataset(Dataset.load(dataset), format, target)
    typer.echo(f"{target}: written{', without what follows:' if problems else ''}")
    for problem in problems:
        typer.echo(f"  {problem}", err=True)
