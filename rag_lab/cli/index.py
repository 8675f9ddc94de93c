"""`rag-lab index`: the documents of one dataset, and what an index holds of each."""

from __future__ import annotations

import shlex
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from rag_lab.cli import completion
from rag_lab.cli.set_option import Settings, open_pipeline
from rag_lab.cli.shell.next_step import next_steps

if TYPE_CHECKING:
    from rag_lab.corpus.files.tracking import Changes, IndexedFile
    from rag_lab.corpus.index.corpus_index import CorpusIndex

_NAMED_CHANGES = 20


def index(
    dataset: Annotated[
        str,
        typer.Argument(
            help="A name that `rag-lab datasets list` shows, or any folder of documents.",
            autocompletion=completion.datasets,
        ),
    ],
    settings: Settings = None,
    list_: Annotated[bool, typer.Option("--list", help="List every file that is indexed.")] = False,
    remove: Annotated[
        list[str] | None, typer.Option(metavar="SOURCE", help="Leave this file out of the index from now on.")
    ] = None,
) -> None:
    """Split and embed the documents of a dataset, or of any folder.

    Only files that are new or changed are read, and only texts never seen are embedded. Bad files are named and left
    out. A file that is removed stays in the folder; `removed.txt` says so.

    \b
    Examples:
      rag-lab index plant_docs
      rag-lab index ~/Documents/manuals
      rag-lab index path/to/my_dataset --set corpus.chunk_size=400 --set corpus.splitter=sentences
      rag-lab index path/to/my_dataset --list
      rag-lab index path/to/my_dataset --remove reports/draft.docx
    """
    with _removing(dataset, remove):
        found = open_pipeline(dataset, settings).index
    for line in _changes(found.changes):
        typer.echo(line)
    for file in found.files if list_ else ():
        typer.echo(_line(file))
    typer.echo(_summary(dataset, found))
    for problem in found.problems:
        typer.echo(f"  {problem}", err=True)
    same = "".join(f" --set {shlex.quote(setting)}" for setting in settings or ())
    next_steps(f'rag-lab ask "..." --dataset {shlex.quote(dataset)}{same}   asks these documents')


def _removing(dataset: str, names: list[str] | None) -> AbstractContextManager[None]:
    from rag_lab.corpus.files.folder import list_files
    from rag_lab.corpus.files.walk import removing
    from rag_lab.data.dataset import corpus_folder, find_dataset

    if not names:
        return nullcontext()
    corpus_dir = corpus_folder(find_dataset(dataset))
    return removing(corpus_dir, names, list_files(corpus_dir, None).files)


def _changes(changes: Changes) -> list[str]:
    groups = {"added": changes.added, "changed": changes.changed, "removed": changes.removed}
    return [
        f"{name} {len(sources)}: {', '.join(sources[:_NAMED_CHANGES])}{', ...' * (len(sources) > _NAMED_CHANGES)}"
        for name, sources in groups.items()
        if sources
    ]


def _line(file: IndexedFile) -> str:
    whose = [f"namespace {file.attributes.namespace}"] if file.attributes.namespace else []
    whose += [f"seen by {', '.join(file.attributes.permissions)}"] if file.attributes.permissions else []
    counts = f"{file.n_documents:>5} documents {file.n_parents:>6} parents {file.n_children:>6} children"
    return "  ".join([file.sha256[:12], counts, file.source, *whose])


def _summary(dataset: str, found: CorpusIndex) -> str:
    language = f" in {found.language}" if found.language else ""
    return (
        f"{dataset}: {found.n_files} files, {found.n_documents} pages and unpaged files, {found.n_parents} parents, "
        f"{found.n_children} children{language}, {len(found.problems)} problems"
    )


COMMANDS = (index,)
