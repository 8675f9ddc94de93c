"""`--set key=value`: dotted keys of the pipeline, values as YAML writes them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_lab._kit.config_file import parse_yaml
from rag_lab.cli import completion
from rag_lab.errors import ConfigError
from rag_lab.redaction import redact_value

if TYPE_CHECKING:
    from rag_lab.config import PipelineConfig
    from rag_lab.pipeline import Pipeline

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a parameter; may be given several times.",
        autocompletion=completion.settings,
    ),
]


def parse_settings(settings: Iterable[str]) -> dict[str, Any]:
    """Return dotted keys and values; `rerank.final_k=3` gives a number, `query.hyde=none` a text.

    Raises:
        ConfigError: naming every setting that is no `key=value`.
    """
    changes: dict[str, Any] = {}
    problems = []
    for setting in settings:
        key, equals, value = setting.partition("=")
        try:
            if not equals or not key.strip():
                raise ValueError
            changes[key.strip()] = parse_yaml(value)
        except ValueError:
            problems.append(
                f"--set takes key=value, got {redact_value(setting)!r}; write for instance --set rerank.final_k=3"
            )
    if problems:
        raise ConfigError("; ".join(problems))
    return changes


def say_without_effect(config: PipelineConfig, keys: Collection[str]) -> None:
    """Tell which of the set `keys` change nothing, and why."""
    from rag_lab.experiment.same_pipeline import settings_without_effect

    for sentence in settings_without_effect(config, keys):
        typer.echo(f"Note: {sentence}", err=True)


def open_pipeline(dataset: str, settings: list[str] | None) -> Pipeline:
    """Return the pipeline on a dataset, its index opened or built.

    Raises:
        RagLabError: if a setting, the dataset or a model cannot be used.
    """
    from rag_lab.config import config_of
    from rag_lab.data.dataset import Dataset
    from rag_lab.experiment.experiment_error import ExperimentError
    from rag_lab.experiment.model_checks import model_problem, models_used
    from rag_lab.pipeline import Pipeline

    changes = parse_settings(settings or [])
    config = config_of(dataset).override(changes)
    if problems := [found for role, text in models_used(config).items() if (found := model_problem(role, text))]:
        raise ExperimentError("models", problems)
    say_without_effect(config, changes)
    return Pipeline(Dataset.load(dataset, labelled=False), config)
