"""`rag-lab judge`: is a model fit to judge?"""

from __future__ import annotations

from typing import Annotated

import typer

from rag_lab.cli import completion
from rag_lab.cli.ask import DEFAULT_DATASET

app = typer.Typer(help="Try a judge before its scores are believed.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _group() -> None:
    """Try a judge before its scores are believed."""


@app.command()
def check(
    model: Annotated[str, typer.Argument(help="The judge, as provider:name.")],
    dataset: Annotated[
        str, typer.Option(help="Whose questions make the trial: a name or a path.", autocompletion=completion.datasets)
    ] = DEFAULT_DATASET,
    questions: Annotated[
        int, typer.Option(min=1, help="How many questions, 20 or more to pass; each makes up to six answers.")
    ] = 20,
    metric: Annotated[
        list[str] | None, typer.Option(help="Try the objects of this metric only; may be given several times.")
    ] = None,
    embedding: Annotated[str | None, typer.Option(help="The embedding model; a pipeline's where left out.")] = None,
    language: Annotated[
        str, typer.Option(help="Language of the examples in its prompts, as in: german; English where left out.")
    ] = "",
    seed: Annotated[int, typer.Option(help="Which questions are drawn.")] = 0,
) -> None:
    """Find out whether a model can judge.

    Does it give what each metric needs, does it tell a right answer from one made wrong, does it agree with itself? The
    result is kept, and reports of runs with this judge say it.

    \b
    Examples:
      rag-lab judge check llamacpp:smollm2
      rag-lab judge check openai:gpt-4.1-mini --dataset path/to/my_dataset --questions 40
      rag-lab judge check llamacpp:smollm2 --metric ragas.faithfulness
    """
    from rag_lab._kit.home import home
    from rag_lab.data.dataset import Dataset
    from rag_lab.evaluation.judge_trial import check_judge, save_check
    from rag_lab.models.config import ModelsConfig
    from rag_lab.models.shared import chat_model, embedder

    found = check_judge(
        chat_model(model),
        Dataset.load(dataset),
        n_questions=questions,
        metrics=metric or None,
        embedder=embedder(embedding or ModelsConfig().embedding),
        memory=home() / "scores.sqlite",
        language=language,
        seed=seed,
        progress=True,
    )
    path = save_check(found)
    typer.echo(str(found))
    typer.echo(f"\nKept in {path}")
