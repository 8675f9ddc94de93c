"""`rag-lab ask`: one question; with --label, what of the passages answers, by number, on one screen."""

from __future__ import annotations

import shlex
import shutil
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from rag_lab.cli import completion
from rag_lab.cli.shared_options import Person, Settings, open_pipeline, permissions_of_asker
from rag_lab.cli.shell import next_steps
from rag_lab.errors import ConfigError

if TYPE_CHECKING:
    from rag_lab.pipeline import Pipeline
    from rag_lab.records import Question, Trace

DEFAULT_DATASET = "plant_docs"
_ASKED = (
    "Which lines marked > answer? Numbers (1 3); 2. lists all sentences of passage 2; 0 where the documents hold no "
    "answer; Enter to label nothing"
)
_LINES, _ROOM = 3, 6  # lines of each passage; of the screen, for the question and what was answered


def ask(
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    dataset: Annotated[
        str,
        typer.Option(help="Whose documents are searched: a name, or any folder.", autocompletion=completion.datasets),
    ] = DEFAULT_DATASET,
    may_see: Annotated[
        list[str] | None, typer.Option(help="A permission of the asker, repeatable; '' for none at all.")
    ] = None,
    namespace: Annotated[str | None, typer.Option(help="Search the documents of this namespace alone.")] = None,
    person: Person = None,
    label: Annotated[
        bool, typer.Option("--label", help="Then choose the passage that answers: a label, by which variants compare.")
    ] = False,
    settings: Settings = None,
) -> None:
    """Answer a question from documents, with citations.

    \b
    Examples:
      rag-lab ask "What is the torque of the ram bolts?"
      rag-lab ask "How do I release a batch?" --set query.hyde=always --set rerank.name=query_likelihood
      rag-lab ask "How is the filter changed?" --dataset ~/Documents/manuals --label
      rag-lab ask "Who gets a bonus?" --dataset path/to/hr --may-see staff
      rag-lab ask "Who gets a bonus?" --dataset path/to/hr --as anna
      rag-lab ask "Who may travel?" --set answer.name=llm --set models.generation=gemini:gemini-2.5-flash
    """
    from rag_lab import access, records
    from rag_lab.notebook.display import toy_of

    if not question.strip():
        raise ConfigError('The question is empty; ask something, as in: rag-lab ask "What does it weigh?"')
    for text in (question, *(may_see or ()), namespace or ""):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ConfigError(
                f"{text!a} holds bytes that are no text in UTF-8; type it in a terminal that sends UTF-8."
            ) from None
    pipeline = open_pipeline(dataset, settings)
    permissions = permissions_of_asker(pipeline.dataset.corpus_dir, person, may_see)
    # The same is said of a namespace that is not there and of one that is closed: whose documents exist is no answer.
    asker = records.Question("asked", "", may_see=permissions, namespace=namespace)
    allowed = access.allowed_labels(pipeline.index.chunks.labels, asker)
    if allowed is not None and not allowed:
        raise ConfigError("There is no document that this asker may see; check --namespace and --may-see.")
    trace = pipeline.ask(question, permissions, namespace)
    for record in trace.stages:
        if record.status != "ok":
            verb = "fell back" if record.status == "fallback" else "failed"
            typer.echo(f"{record.stage} {verb}: {record.reason}", err=True)
    if trace.failure:
        raise typer.Exit(1)
    typer.echo(answer_text(trace))
    if trace.answer and (note := toy_of(trace)):
        typer.echo(f"\n{note}", err=True)
    if label:
        label_passage(pipeline, trace.question)


def answer_text(trace: Trace) -> str:
    """Return the answer with its citations, or where answers are switched off the passages that were found."""
    if trace.answer is None:
        none = "(what was found does not fit the budget of the context)" if trace.ranked else "(nothing was found)"
        return "\n".join([f"[{p.number}] {_place(p.source, p.page)}" for p in trace.passages] or [none])
    answer, cited = " ".join(trace.answer.text.split()), []
    for citation in trace.answer.citations:
        text = " ".join(citation.quote.split())
        quote = f': "{text}"' if text and text != answer else ""  # an answer that is a quote stands above
        cited.append(f"[{citation.number}] {_place(citation.source, citation.page)}{quote}")
    return "\n".join([trace.answer.text, *(cited or ["(no citation)"])])


def _place(source: str, page: int | None) -> str:
    return source if page is None else f"{source}, page {page}"


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
