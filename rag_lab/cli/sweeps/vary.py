"""`rag-lab run` and `vary`: one variant, or a sweep, without a file to begin with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_lab.cli import completion
from rag_lab.cli.ask import DEFAULT_DATASET
from rag_lab.cli.shared_options import DryRun, Jobs, Out, Settings, Yes, parse_settings
from rag_lab.cli.shell import command_line
from rag_lab.cli.sweeps.execute import start
from rag_lab.errors import ConfigError
from rag_lab.redaction import redact_value

if TYPE_CHECKING:
    from rag_lab.experiment.without_file import Asked

Labelled = Annotated[
    str, typer.Option(help="Whose questions are asked: a name, or a path.", autocompletion=completion.datasets)
]
Base = Annotated[
    str | None,
    typer.Option(
        metavar="PRESET",
        help="The pipeline to begin with: a preset or a YAML file; the data set's pipeline.yaml or the defaults where "
        "left out.",
        autocompletion=completion.presets,
    ),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME[,NAME]",
        help="The first decides; repeatable. retrieval.ndcg@10, retrieval.evidence_recall@5 and cost.seconds where "
        "left out.",
        autocompletion=completion.metrics,
    ),
]
Judge = Annotated[
    str | None, typer.Option(metavar="PROVIDER:NAME", help="The model that judges, where a metric needs one.")
]
Questions = Annotated[int | None, typer.Option(min=1, help="Ask a stratified sample of so many.")]
Answers = Annotated[int | None, typer.Option(min=0, help="Answer so many of those asked; all where left out.")]


def run(
    dataset: Labelled = DEFAULT_DATASET,
    base: Base = None,
    settings: Settings = None,
    metrics: Metrics = None,
    questions: Questions = None,
    answers: Answers = None,
    judge: Judge = None,
    out: Out = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Run one pipeline on a data set, print its scores.

    What earlier runs and sweeps computed is not computed again. Where no metric reads answers, none are generated.

    \b
    Examples:
      rag-lab run --questions 40
      rag-lab run --base laptop --set rerank.name=query_likelihood --dry-run
      rag-lab run --dataset path/to/my_dataset --metrics retrieval.ndcg@10,answer.abstention --answers 5
    """
    from rag_lab.experiment.plan import plan
    from rag_lab.experiment.run.run_options import RunOptions
    from rag_lab.experiment.without_file import Asked, run_name

    asked = Asked(
        dataset, base, parse_settings(settings or []), {}, **_measured(dataset, metrics, questions, answers, judge)
    )
    experiment = asked.experiment()
    checked = plan({"name": run_name(asked.name, experiment), **experiment})
    _say_no_answers(asked)
    start(checked, out, RunOptions(), dry_run, scores=True, yes=yes)


def vary(
    factors: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY=VALUE,VALUE...",
            help="A setting and its values; the first of each is the baseline's.",
            autocompletion=completion.factors,
        ),
    ],
    dataset: Labelled = DEFAULT_DATASET,
    base: Base = None,
    settings: Settings = None,
    metrics: Metrics = None,
    questions: Questions = None,
    answers: Answers = None,
    judge: Judge = None,
    design: Annotated[
        str,
        typer.Option(
            help="one_factor: the baseline left in one setting at a time. grid: all combinations. "
            "fractional: a balanced part of these. random: -n of these. racing: all, of which rounds of questions "
            "drop who is worse. staged: stage by stage, the best is carried on. optuna: -n trials, each chosen by "
            "those before it.",
            autocompletion=completion.designs,
        ),
    ] = "one_factor",
    n: Annotated[
        int | None,
        typer.Option("-n", min=2, help="So many variants by random or optuna; at most so many by fractional."),
    ] = None,
    out: Out = None,
    jobs: Jobs = "auto",
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Run a sweep without a file, which it writes.

    The file is an experiment to keep, change and sweep again; it is written into experiments/, if there is such a
    folder here, else beside you, and nothing that is there is written over. Where no metric reads answers, none are
    generated.

    \b
    Examples:
      rag-lab vary rerank.name=none,query_likelihood query.hyde=none,always --dry-run
      rag-lab vary corpus.chunk_size=400,800,1200 --base laptop --questions 60 --jobs 2
      rag-lab vary rerank.name=none,query_likelihood answer.thinking=false,true --design grid --answers 20 \\
          --metrics retrieval.ndcg@10,answer.abstention
      rag-lab vary retrieval.base_k=10,20,40 rerank.final_k=3,5 corpus.chunk_size=400,800 --design random -n 6
    """
    from rag_lab.experiment.plan import plan
    from rag_lab.experiment.run.run_options import RunOptions, as_jobs
    from rag_lab.experiment.without_file import Asked, file_for, write_file

    asked = Asked(
        dataset,
        base,
        parse_settings(settings or []),
        parse_factors(factors),
        design=design,
        n=n,
        **_measured(dataset, metrics, questions, answers, judge),
    )
    experiment = asked.experiment()
    path = file_for(asked.name, experiment)
    whole = {"name": path.stem, **experiment}
    checked = plan(whole, folder=path.parent)
    _say_no_answers(asked)
    if dry_run:
        typer.echo(f"Nothing is written yet; the experiment will be {path}.", err=True)
    else:
        write_file(path, whole, command_line())
        typer.echo(f"Experiment: {path} (change it, and run it by `rag-lab sweep {path}`)", err=True)
    start(checked, out, RunOptions(as_jobs(jobs)), dry_run, yes=yes)


def parse_factors(factors: Iterable[str]) -> dict[str, list[Any]]:
    """Return dotted keys and their values; `rerank.final_k=3,5` gives two numbers."""
    from rag_lab._kit.config_file import parse_yaml

    found: dict[str, list[Any]] = {}
    problems = []
    for factor in factors:
        key, _, listed = factor.partition("=")
        try:
            values = parse_yaml(f"[{listed}]")
        except ValueError:
            values = []
        if not key.strip() or not values:
            problems.append(
                f"{redact_value(factor)!r} is no setting with values; write for instance rerank.final_k=3,5"
            )
        elif key.strip() in found:
            problems.append(f"{key.strip()} is given twice; write all of its values after one =")
        else:
            found[key.strip()] = values
    if problems:
        raise ConfigError("; ".join(problems))
    if all(len(values) == 1 for values in found.values()):
        given = " ".join(f"{key}={values[0]}" for key, values in found.items())
        raise ConfigError(f"{redact_value(given)!r} varies nothing; give two values or more, as in rerank.final_k=3,5")
    return found


def _measured(
    dataset: str, metrics: list[str] | None, questions: int | None, answers: int | None, judge: str | None
) -> dict[str, Any]:
    from rag_lab.evaluation.registry import split_names
    from rag_lab.experiment.without_file import usual_metrics

    names = [name for text in metrics or () for name in split_names(text)]
    return {"metrics": names or usual_metrics(dataset), "questions": questions, "answers": answers, "judge": judge}


def _say_no_answers(asked: Asked) -> None:
    if asked.leaves_out_answers:
        typer.echo(
            "No answers are generated (answer.name=none), since no metric reads them; name one that does, as "
            "answer.abstention.",
            err=True,
        )


COMMANDS = (run, vary)
