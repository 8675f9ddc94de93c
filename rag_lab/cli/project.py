"""`rag-lab new DIR DOCUMENTS`: from a folder of documents to a first comparison."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rag_lab.cli.shell.next_step import next_steps

COMMAND = "project"


class ProjectByDefault(TyperGroup):
    """What names none of the group's commands is a project: `rag-lab new mine docs/`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command's name before its arguments, where it was left out."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [COMMAND, *args]
        return super().parse_args(ctx, args)


def new_project(
    folder: Annotated[Path, typer.Argument(help="The new folder.", metavar="DIR")],
    documents: Annotated[
        Path, typer.Argument(help="The folder of your documents; it stays as it is.", metavar="DOCUMENTS")
    ],
    copy: Annotated[bool, typer.Option("--copy", help="Copy the documents; a link is made where left out.")] = False,
) -> None:
    """Begin with your own documents (`project` may be left out).

    Makes a folder with questions and an experiment that fits the documents. They are read, and their profile says what
    to set. Up to eight questions are drafted from their headings: put your own in their place. Nothing that is there
    is written over.

    \b
    Examples:
      rag-lab new mine docs/
      rag-lab new mine docs/ --copy

    \b
    Then, from documents without labels to a report:
      rag-lab sweep mine/experiment.yaml
      rag-lab open results/mine
    """
    from rag_lab.data.questions_file import QUESTIONS_FILE
    from rag_lab.experiment.new_project import EXPERIMENT_FILE
    from rag_lab.experiment.new_project import new_project as make
    from rag_lab.notebook.views.data_view import profile_page

    made = make(folder, documents, copy=copy)
    page = folder / "profile.html"
    page.write_text(profile_page(made.profile), encoding="utf-8")
    kept = "copied" if copy else "linked, not copied"
    typer.echo(
        f"{made.files[0]}  {made.profile.n_used} of {sum(made.profile.files.values())} files can be used ({kept})"
    )
    for path in (*made.files[1:], page):
        typer.echo(path)
    for setting in made.profile.settings:
        typer.echo(f"Set: {setting}={made.profile.settings[setting]}")
    for problem in made.profile.problems:
        typer.echo(f"  {problem}", err=True)
    if made.n_questions:
        were = "question was" if made.n_questions == 1 else "questions were"
        typer.echo(f"{made.n_questions} {were} drafted from the texts: put your own in their place.", err=True)
    elif not (folder / QUESTIONS_FILE).stat().st_size:
        typer.echo(f"No question could be drafted from the texts: a sweep needs yours in {QUESTIONS_FILE}.", err=True)
    where = shlex.quote(str(folder))
    next_steps(
        f"rag-lab sweep {where}/{EXPERIMENT_FILE}   compare the variants, write a report",
        f"rag-lab ask QUESTION --dataset {where}   one question",
        f"rag-lab profile {where}                  what the documents are like, and what to set",
    )
