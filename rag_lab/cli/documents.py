"""`rag-lab index` and `profile`: what an index holds of documents, what they are like, and what to set for them."""

from __future__ import annotations

import shlex
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag_lab.cli import completion
from rag_lab.cli.shared_options import Settings, open_pipeline, parse_settings
from rag_lab.cli.shell import next_steps

if TYPE_CHECKING:
    from rag_lab.corpus.files.tracking import IndexedFile

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
    for name in ("added", "changed", "removed"):
        if sources := getattr(found.changes, name):
            more = ", ..." * (len(sources) > _NAMED_CHANGES)
            typer.echo(f"{name} {len(sources)}: {', '.join(sources[:_NAMED_CHANGES])}{more}")
    for file in found.files if list_ else ():
        typer.echo(_line(file))
    language = f" in {found.language}" if found.language else ""
    typer.echo(
        f"{dataset}: {found.n_files} files, {found.n_documents} pages and unpaged files, {found.n_parents} parents, "
        f"{found.n_children} children{language}, {len(found.problems)} problems"
    )
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


def _line(file: IndexedFile) -> str:
    whose = [f"namespace {file.attributes.namespace}"] if file.attributes.namespace else []
    whose += [f"seen by {', '.join(file.attributes.permissions)}"] if file.attributes.permissions else []
    counts = f"{file.n_documents:>5} documents {file.n_parents:>6} parents {file.n_children:>6} children"
    return "  ".join([file.sha256[:12], counts, file.source, *whose])


def profile(
    dataset: Annotated[
        str, typer.Argument(help="Any folder of documents, or a data set's name.", autocompletion=completion.datasets)
    ],
    settings: Settings = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it as a page, too.")] = None,
) -> None:
    """Say what a corpus is like, and what to set for it and why.

    Files, pages, languages, tables, scans, copies and revisions; how much of its chunks and pages the models of the
    settings read; every problem of a file. It is read as `rag-lab index` reads it, and nothing is read twice.

    \b
    Examples:
      rag-lab profile ~/Documents/manuals
      rag-lab profile ~/Documents/manuals --html profile.html
      rag-lab profile plant_docs --set corpus.chunk_size=400
    """
    import shlex

    from rag_lab.config import PipelineConfig
    from rag_lab.corpus_profile.corpus_profile import profile as of_corpus
    from rag_lab.data.dataset import is_dataset
    from rag_lab.errors import ConfigError
    from rag_lab.notebook.views.data_view import profile_page

    found = of_corpus(dataset, PipelineConfig().override(parse_settings(settings or [])))
    typer.echo(str(found))
    if html:
        try:
            html.write_text(profile_page(found), encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"Cannot write {html}: {error.strerror}; choose another place.") from None
        typer.echo(f"Written: {html}")
    where = shlex.quote(found.folder)
    if not is_dataset(Path(found.folder)):
        next_steps(f"rag-lab new mine {where}   a folder to experiment in, with these settings")
    elif found.to_try:
        factors = " ".join(f"{key}={','.join(map(str, values))}" for key, values in found.to_try.items())
        next_steps(f"rag-lab vary {factors} --dataset {where}   what only a comparison can tell")


COMMANDS = (profile, index)
