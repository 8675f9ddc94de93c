"""`rag-lab ask`, `chat` and `write`: one question, a conversation that goes on where it was left, a report on a topic.

With `ask --label` follows what of the passages answers, by number, on one screen.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rag_lab.cli import shared_options as shared
from rag_lab.cli.shell import next_steps
from rag_lab.errors import ConfigError, RagLabError

if TYPE_CHECKING:
    from rag_lab.pipeline import Pipeline
    from rag_lab.records import Question, Trace

_ASKED = (
    "Which lines marked > answer? Numbers (1 3); 2. lists all sentences of passage 2; 0 where the documents hold no "
    "answer; Enter to label nothing"
)
_LINES, _ROOM = 3, 6  # lines of each passage; of the screen, for the question and what was answered
_HELP = """\
/set KEY=VALUE   change a setting for the turns to come
/again           answer the last question once more, under the settings of now
/thinking        show what the model thought before the last answer
/export FILE     write the turns as follow-up questions with labels
/quit            leave; the session is kept"""


def ask(
    question: str,
    dataset: shared.Documents = shared.DEFAULT_DATASET,
    may_see: list[str] | None = None,
    namespace: str | None = None,
    person: shared.Person = None,
    label: Annotated[bool, typer.Option("--label")] = False,
    settings: shared.Settings = None,
) -> None:
    """Answer a question from documents, with citations."""
    from rag_lab import access, records
    from rag_lab.notebook.display import toy_of
    from rag_lab.sources.ingestion import Ingestion

    if not question.strip():
        raise ConfigError('The question is empty; ask something, as in: rag-lab ask "What does it weigh?"')
    for text in (question, *(may_see or ()), namespace or ""):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ConfigError(
                f"{text!a} holds bytes that are no text in UTF-8; type it in a terminal that sends UTF-8."
            ) from None
    pipeline = shared.open_pipeline(dataset, settings)
    permissions = shared.permissions_of_asker(pipeline.dataset.corpus_dir, person, may_see)
    # The same is said of a namespace that is not there and of one that is closed: whose documents exist is no answer.
    asker = records.Question("asked", "", may_see=permissions, namespace=namespace)
    allowed = access.allowed_labels(pipeline.index.chunks.labels, asker)
    if allowed is not None and not allowed:
        raise ConfigError("There is no document that this asker may see; check --namespace and --may-see.")
    trace = pipeline.ask(question, permissions, namespace)
    _report_stages(trace)
    if trace.failure:
        raise typer.Exit(1)
    typer.echo(answer_text(trace))
    # As of when its sources are known; which there are is not for everybody.
    for stands in Ingestion(pipeline.dataset.path, ()).status().values() if allowed is None else ():
        typer.echo(stands, err=True)
    if trace.answer and (note := toy_of(trace)):
        typer.echo(f"\n{note}", err=True)
    if label:
        label_passage(pipeline, trace.question)


def _report_stages(trace: Trace) -> None:
    for record in trace.stages:
        if record.status != "ok":
            verb = "fell back" if record.status == "fallback" else "failed"
            typer.echo(f"{record.stage} {verb}: {record.reason}", err=True)


def answer_text(trace: Trace) -> str:
    """Return the answer with its citations, or where answers are switched off the passages that were found."""
    if trace.answer is None:
        none = "(what was found does not fit the budget of the context)" if trace.ranked else "(nothing was found)"
        return "\n".join([f"[{p.number}] {_place(p.source, p.page, p.url)}" for p in trace.passages] or [none])
    answer, cited = " ".join(trace.answer.text.split()), []
    for citation in trace.answer.citations:
        text = " ".join(citation.quote.split())
        quote = f': "{text}"' if text and text != answer else ""  # an answer that is a quote stands above
        cited.append(f"[{citation.number}] {_place(citation.source, citation.page, citation.url)}{quote}")
    return "\n".join([trace.answer.text, *(cited or ["(no citation)"])])


def _place(source: str, page: int | None, url: str = "") -> str:
    return (source if page is None else f"{source}, page {page}") + f" <{url}>" * bool(url)


def label_passage(pipeline: Pipeline, question: Question) -> None:
    """Show where the passages come nearest to the question, ask what of it answers, and write that as a label."""
    from rag_lab.data.labels import questions_file
    from rag_lab.notebook.judgements import label

    found = label(pipeline, question)
    width, height = shutil.get_terminal_size()
    shown = found.passages[: max(3, (height - _ROOM) // (_LINES + 1))]
    typer.echo()
    for number, passage in enumerate(shown, start=1):
        # The sentence, row or item that is nearest to the question, and the lines around it where there is room.
        units, at = passage.units, passage.units.index(passage.quote)
        best = wrap(" ".join(passage.quote.split()), width - 5, max_lines=_LINES, placeholder=" …")
        before = [" ".join(units[at - 1].split())] if at and len(best) < _LINES else []
        after = [" ".join(units[at + 1].split())] if at + 1 < len(units) and len(best) + len(before) < _LINES else []
        before, after = (
            [f"    {text[: width - 6]} …" if len(text) > width - 5 else f"    {text}" for text in one]
            for one in (before, after)
        )
        place = _place(passage.hit.source, passage.hit.page)
        typer.echo("\n".join([f"[{number}] {place}", *before, *(f"  > {line}" for line in best), *after]))
    while True:
        reply = str(typer.prompt(f"\n{_ASKED}", default="", show_default=False)).strip()
        if not (reply.endswith(".") and reply[:-1].isdecimal() and 0 < int(reply[:-1]) <= len(shown)):
            break
        for n, text in enumerate(shown[int(reply[:-1]) - 1].units, start=1):
            typer.echo(f"{reply}{n}  {' '.join(text.split())}")
    quotes = {str(n): (n, passage.quote) for n, passage in enumerate(shown, start=1)}
    quotes |= {f"{n}.{m}": (n, text) for n, one in enumerate(shown, start=1) for m, text in enumerate(one.units, 1)}
    typed = reply.replace(",", " ").split()
    if not typed:
        typer.echo("No label was written.")
        return
    if typed == ["0"]:
        found.no_answer()
    elif unknown := [one for one in typed if one not in quotes]:
        raise ConfigError(
            f"{unknown[0]!r:.60} names nothing here: type numbers from 1 to {len(shown)}, as 2, or 2.3 for a sentence "
            "of the second passage, or 0 alone."
        )
    for number, quote in (quotes[one] for one in typed if one != "0"):
        found.take(number, quote)
    file = questions_file(pipeline.dataset)
    typer.echo(f"The label stands in {file}.")
    folder = shlex.quote(str(file.parent))
    next_steps(
        f"rag-lab ask ANOTHER_QUESTION --dataset {folder} --label",
        f"rag-lab datasets check {folder}   what is labelled",
    )


def chat(
    dataset: shared.Documents = shared.DEFAULT_DATASET,
    session: Annotated[str | None, typer.Option(metavar="ID")] = None,
    latest: Annotated[bool, typer.Option("--latest")] = False,
    person: shared.Person = None,
    settings: shared.Settings = None,
) -> None:
    """Talk with documents, with follow-up questions."""
    from rag_lab.assistant.chat import Chat, Sessions

    pipeline = shared.open_pipeline(dataset, settings)
    corpus_dir = pipeline.dataset.corpus_dir
    permissions = shared.permissions_of_asker(corpus_dir, person, None)
    if latest and session is None:
        session = Sessions(pipeline.home).latest(person or "", str(corpus_dir.resolve()))
    talk = Chat(pipeline, session, person=person or "", may_see=permissions)
    typer.echo(f"Session {talk.session}, {len(talk.turns)} turns so far. Ask, or type /help; an empty line ends it.")
    if talk.pending is not None:
        typer.echo(f"The last question was not answered: {talk.pending.question}")
        _show(talk.again)
    while True:
        try:
            line = str(typer.prompt("\n?", prompt_suffix=" ", default="", show_default=False)).strip()
            command, _, rest = line.partition(" ")
            if command in ("", "/quit"):
                break
            if command == "/set":
                talk.set(shared.parse_settings([rest]))
                typer.echo(f"{rest.strip()} from now on.")
            elif command == "/again":
                before = next((turn.answer for turn in reversed(talk.turns) if turn.answer), "")
                last, trace = talk.last, _show(talk.again)
                if trace.answer is not None and trace.answer.text == before:
                    typer.echo("(the same answer as before)")
                if last is not None:
                    new, old = ({one.parent_id for one in each.passages} for each in (trace, last[1]))
                    typer.echo(f"(of the passages that are read, {len(new - old)} came and {len(old - new)} went)")
            elif command == "/thinking":
                thought = next((one.thinking for one in reversed(talk.turns) if one.answer), "")
                typer.echo(thought or "(the last answer has no thinking)")
            elif command == "/export":
                typer.echo(f"{talk.export(rest.strip() or f'{talk.session}.jsonl')} questions were written.")
            elif command.startswith("/"):
                typer.echo(_HELP)
            else:
                _show(talk.ask, line)
        except RagLabError as error:
            typer.echo(f"rag-lab: {error}", err=True)
        except typer.Abort:
            break
    words = ["rag-lab", "chat", "--session", talk.session, "--dataset", dataset, *(["--as", person] if person else [])]
    typer.echo(f"To go on: {shlex.join(words)}")


def _show(answer: Callable[..., Trace], *asked: str) -> Trace:
    """Show an answer while it is written, then what it cites."""
    trace = answer(*asked, lambda text: typer.echo(text, nl=False))
    if trace.answer or trace.failure:
        typer.echo()
    _report_stages(trace)
    if trace.search_query and trace.question.history and trace.search_query != trace.question.text:
        typer.echo(f"(searched: {trace.search_query})", err=True)
    if not trace.failure:
        typer.echo(answer_text(trace)[len(trace.answer.text) + 1 if trace.answer else 0 :])
    return trace


def write(
    topic: Annotated[str | None, typer.Argument()] = None,
    dataset: shared.Documents = shared.DEFAULT_DATASET,
    parts: Annotated[int, typer.Option(min=1, max=20)] = 5,
    style: Literal["technical", "general"] = "technical",
    out: Path | None = None,
    list_: Annotated[bool, typer.Option("--list")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y")] = False,
    person: shared.Person = None,
    settings: shared.Settings = None,
) -> None:
    """Write a report from documents."""
    from rag_lab.assistant import report_writer

    if list_:
        found = report_writer.earlier_reports()
        typer.echo("\n".join(f"{folder}  {name}" for folder, name in found) or "No report was written yet.")
        return
    if topic is None:
        raise ConfigError('Name a topic, as in: rag-lab write "Maintenance of the press"; --list shows reports.')
    pipeline = shared.open_pipeline(dataset, settings)
    permissions = shared.permissions_of_asker(pipeline.dataset.corpus_dir, person, None)
    calls = 1 + 2 * parts
    typer.echo(f"At most {calls} calls of {pipeline.config.models.report}.", err=True)
    if parts > 1 and not yes:  # calls of a model on this machine take long
        typer.confirm("Begin?", default=True, abort=True, err=True)

    report = report_writer.write(
        pipeline,
        topic,
        parts=parts,
        style=style,
        may_see=permissions,
        folder=out,
        progress=lambda what, done, total: typer.echo(f"[{done}/{total}] {what}", err=True),
    )
    for one in report.sections:
        if one.problem:
            typer.echo(f"{one.title}: {one.problem}", err=True)
    typer.echo(f"{report.folder}/report.html\n{report.folder}/report.md")
