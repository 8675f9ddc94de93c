"""`rag-lab chat` and `rag-lab write`: a conversation that goes on where it was left, and a report on a topic."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag_lab.cli import completion
from rag_lab.cli.ask import DEFAULT_DATASET, answer_text
from rag_lab.cli.shared_options import Person, Settings, open_pipeline, parse_settings, permissions_of_asker
from rag_lab.errors import ConfigError, RagLabError

if TYPE_CHECKING:
    from rag_lab.assistant.chat import Chat
    from rag_lab.records import Trace

_ASKS_FROM = 5  # calls of a model on this machine take long: so many are announced and confirmed
_HELP = """\
/set KEY=VALUE   change a setting for the turns to come
/again           answer the last question once more, under the settings of now
/export FILE     write the turns as follow-up questions with labels
/quit            leave; the session is kept"""


def chat(
    dataset: Annotated[
        str,
        typer.Option(help="Whose documents are searched: a name, or any folder.", autocompletion=completion.datasets),
    ] = DEFAULT_DATASET,
    session: Annotated[str | None, typer.Option(metavar="ID", help="The conversation to begin or go on with.")] = None,
    latest: Annotated[bool, typer.Option("--latest", help="Go on with the person's latest conversation.")] = False,
    person: Person = None,
    settings: Settings = None,
) -> None:
    """Talk with documents, with follow-up questions.

    A session is kept: it goes on where it was left, also after a kill. Answers cite source and page.

    \b
    Examples:
      rag-lab chat
      rag-lab chat --dataset ~/Documents/manuals --latest
      rag-lab chat --session line-3 --as anna --dataset path/to/hr
      rag-lab chat --set answer.name=llm --set models.generation=gemini:gemini-2.5-flash
    """
    from rag_lab.assistant.chat import Chat
    from rag_lab.assistant.sessions import Sessions

    pipeline = open_pipeline(dataset, settings)
    corpus_dir = pipeline.dataset.corpus_dir
    permissions = permissions_of_asker(corpus_dir, person, None)
    if latest and session is None:
        session = Sessions(pipeline.home).latest(person or "", str(corpus_dir.resolve()))
    talk = Chat(pipeline, session, person=person or "", may_see=permissions)
    turns = talk.turns
    again = f", {len(turns)} turns so far" if turns else ""
    typer.echo(f"Session {talk.session}{again}. Ask, or type /help; an empty line or Ctrl-D ends it.")
    if talk.pending is not None:
        typer.echo(f"The last question was not answered: {talk.pending.question}")
        _show(talk.again)
    while line := _line():
        try:
            _turn(talk, line)
        except RagLabError as error:
            typer.echo(f"rag-lab: {error}", err=True)
        except EOFError:
            break
    words = ["rag-lab", "chat", "--session", talk.session, "--dataset", dataset, *(["--as", person] if person else [])]
    typer.echo(f"To go on: {shlex.join(words)}")


def _line() -> str:
    try:
        return str(typer.prompt("\n?", prompt_suffix=" ", default="", show_default=False)).strip()
    except typer.Abort:
        return ""


def _turn(talk: Chat, line: str) -> None:
    command, _, rest = line.partition(" ")
    if command == "/quit":
        raise EOFError
    if command == "/set":
        talk.set(parse_settings([rest]))
        typer.echo(f"{rest.strip()} from now on.")
    elif command == "/again":
        before = next((turn.answer for turn in reversed(talk.turns) if turn.answer), "")
        trace = _show(talk.again)
        if trace.answer is not None and trace.answer.text == before:
            typer.echo("(the same answer as before)")
    elif command == "/export":
        typer.echo(f"{talk.export(rest.strip() or f'{talk.session}.jsonl')} questions were written.")
    elif command.startswith("/"):
        typer.echo(_HELP)
    else:
        _show(partial(talk.ask, line))


def _show(answer: Callable[[Callable[[str], object]], Trace]) -> Trace:
    """Show an answer while it is written, then what it cites."""
    trace = answer(partial(typer.echo, nl=False))
    if trace.answer or trace.failure:
        typer.echo()
    for record in trace.stages:
        if record.status != "ok":
            verb = "fell back" if record.status == "fallback" else "failed"
            typer.echo(f"{record.stage} {verb}: {record.reason}", err=True)
    if trace.search_query and trace.question.history and trace.search_query != trace.question.text:
        typer.echo(f"(searched: {trace.search_query})", err=True)
    if not trace.failure:
        typer.echo(answer_text(trace)[len(trace.answer.text) + 1 if trace.answer else 0 :])
    return trace


def write(
    topic: Annotated[str | None, typer.Argument(help="What the report is about.")] = None,
    dataset: Annotated[
        str, typer.Option(help="Whose documents are read: a name, or any folder.", autocompletion=completion.datasets)
    ] = DEFAULT_DATASET,
    parts: Annotated[int, typer.Option(min=1, max=20, help="Sections at most.")] = 5,
    style: Annotated[str, typer.Option(help="technical: precise values; general: for a broad audience.")] = "technical",
    out: Annotated[
        Path | None, typer.Option(help="The folder of the report; below results/reports where left out.")
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="List the reports that were written, the newest first.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before the calls are made.")] = False,
    person: Person = None,
    settings: Settings = None,
) -> None:
    """Write a report from documents.

    An outline, then each section drafted from its passages and reviewed; citations are checked.

    \b
    Examples:
      rag-lab write "Maintenance of the press" --parts 3
      rag-lab write "Safety rules" --style general --dataset ~/Documents/manuals
      rag-lab write "Bonus rules" --as anna --dataset path/to/hr --set models.report=gemini:gemini-2.5-flash
      rag-lab write --list
    """
    from rag_lab.assistant.report_writer import earlier_reports
    from rag_lab.assistant.report_writer import write as write_report

    if list_:
        found = earlier_reports()
        typer.echo("\n".join(f"{folder}  {name}" for folder, name in found) or "No report was written yet.")
        return
    if topic is None:
        raise ConfigError(
            'Name a topic, as in: rag-lab write "Maintenance of the press"; --list shows earlier reports.'
        )
    if style not in ("technical", "general"):
        raise ConfigError(f"--style is technical or general, not {style!r}.")
    pipeline = open_pipeline(dataset, settings)
    permissions = permissions_of_asker(pipeline.dataset.corpus_dir, person, None)
    calls = 1 + 2 * parts
    typer.echo(f"At most {calls} calls of {pipeline.config.models.report}.", err=True)
    if calls >= _ASKS_FROM and not yes:
        typer.confirm("Begin?", default=True, abort=True, err=True)

    def progress(what: str, done: int, total: int) -> None:
        typer.echo(f"[{done}/{total}] {what}", err=True)

    report = write_report(
        pipeline,
        topic,
        parts=parts,
        style="general" if style == "general" else "technical",
        may_see=permissions,
        folder=out,
        progress=progress,
    )
    for one in report.sections:
        if one.problem:
            typer.echo(f"{one.title}: {one.problem}", err=True)
    typer.echo(f"{report.folder}/report.html\n{report.folder}/report.md")
