"""`rag-lab ask`: one question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rag_lab.cli import completion
from rag_lab.cli.label_passage import label_passage
from rag_lab.cli.set_option import Settings, open_pipeline

if TYPE_CHECKING:
    from rag_lab.records import Citation, Trace

DEFAULT_DATASET = "plant_docs"


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
      rag-lab ask "Who may travel?" --set answer.name=llm --set models.generation=gemini:gemini-2.5-flash
    """
    from rag_lab.notebook.views.trace_view import toy_of

    _check(question, *(may_see or ()), namespace or "")
    permissions = None if may_see is None else tuple(name for name in may_see if name)
    pipeline = open_pipeline(dataset, settings)
    _refuse_nothing_to_see(pipeline.index.labels, permissions, namespace)
    trace = pipeline.ask(question, permissions, namespace)
    for record in trace.stages:
        if record.status != "ok":
            verb = "fell back" if record.status == "fallback" else "failed"
            typer.echo(f"{record.stage} {verb}: {record.reason}", err=True)
    if trace.failure:
        raise typer.Exit(1)
    typer.echo(_answer(trace))
    if trace.answer and (note := toy_of(trace)):
        typer.echo(f"\n{note}", err=True)
    if label:
        label_passage(pipeline, trace.question)


def _check(question: str, *names: str) -> None:
    from rag_lab.errors import ConfigError

    if not question.strip():
        raise ConfigError('The question is empty; ask something, as in: rag-lab ask "What does it weigh?"')
    for text in (question, *names):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ConfigError(
                f"{text!a} holds bytes that are no text in UTF-8; type it in a terminal that sends UTF-8."
            ) from None


def _refuse_nothing_to_see(labels: frozenset[str], permissions: tuple[str, ...] | None, namespace: str | None) -> None:
    """Say the same of a namespace that is not there and of one that is closed: whose documents exist is no answer."""
    from rag_lab.access import allowed_labels
    from rag_lab.errors import ConfigError
    from rag_lab.records import Question

    allowed = allowed_labels(labels, Question("asked", "", may_see=permissions, namespace=namespace))
    if allowed is not None and not allowed:
        raise ConfigError("There is no document that this asker may see; check --namespace and --may-see.")


def _answer(trace: Trace) -> str:
    """Return the answer with its citations, or where answers are switched off the passages that were found."""
    if trace.answer is None:
        found = [f"[{p.number}] {_place(p.source, p.page)}" for p in trace.passages]
        none = "(what was found does not fit the budget of the context)" if trace.ranked else "(nothing was found)"
        return "\n".join(found or [none])
    cited = [_citation(citation, trace.answer.text) for citation in trace.answer.citations]
    return "\n".join([trace.answer.text, *(cited or ["(no citation)"])])


def _citation(citation: Citation, answer: str) -> str:
    text = " ".join(citation.quote.split())
    quote = f': "{text}"' if text and text != " ".join(answer.split()) else ""  # an answer that is a quote stands above
    return f"[{citation.number}] {_place(citation.source, citation.page)}{quote}"


def _place(source: str, page: int | None) -> str:
    return source if page is None else f"{source}, page {page}"


COMMANDS = (ask,)
