"""`rag-lab profile`: what a folder of documents is like, and what to set for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_lab.cli import completion
from rag_lab.cli.set_option import Settings, parse_settings
from rag_lab.cli.shell.next_step import next_steps


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


COMMANDS = (profile,)
