"""Options that several commands share, and what they hold."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_lab.cli import completion
from rag_lab.errors import ConfigError
from rag_lab.redaction import redact_value

if TYPE_CHECKING:
    from rag_lab.pipeline import Pipeline

Settings = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", autocompletion=completion.settings)]

DEFAULT_DATASET = "plant_docs"
Documents = Annotated[str, typer.Option(autocompletion=completion.datasets)]
Person = Annotated[str | None, typer.Option("--as", metavar="NAME")]
Run = Annotated[Path, typer.Argument(metavar="RUN", autocompletion=completion.runs)]
RunDir = Annotated[Path, typer.Argument(metavar="RUN_DIR", autocompletion=completion.runs)]
ExperimentFile = Annotated[Path, typer.Argument(metavar="EXPERIMENT.yaml", autocompletion=completion.experiments)]
DryRun = Annotated[bool, typer.Option("--dry-run")]
Yes = Annotated[bool, typer.Option("--yes", "-y")]
Margins = Annotated[list[str] | None, typer.Option("--margin", metavar="METRIC=VALUE")]
WithoutKnown = Annotated[float | None, typer.Option("--without-known", metavar="SCORE")]
Jobs = Annotated[str, typer.Option(metavar="N|auto")]
Slurm = Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE")]
CellMinutes = Annotated[float, typer.Option(min=0.01)]
Check = Annotated[bool | None, typer.Option("--check/--no-check")]
KeepGoing = Annotated[bool, typer.Option("--keep-going")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed")]
Cold = Annotated[bool, typer.Option("--cold")]


def parse_settings(settings: Iterable[str]) -> dict[str, Any]:
    """Return dotted keys and values; `rerank.final_k=3` gives a number, `query.hyde=none` a text."""
    from rag_lab._kit.config_file import parse_yaml

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


def open_pipeline(dataset: str, settings: list[str] | None) -> Pipeline:
    """Return the pipeline on a dataset, its index opened or built."""
    from rag_lab.config import config_of
    from rag_lab.data.dataset import Dataset
    from rag_lab.experiment.design import ExperimentError
    from rag_lab.experiment.stage_identities import model_problem, models_used, settings_without_effect
    from rag_lab.pipeline import Pipeline

    changes = parse_settings(settings or [])
    config = config_of(dataset).override(changes)
    if problems := [found for role, text in models_used(config).items() if (found := model_problem(role, text))]:
        raise ExperimentError("models", problems)
    for sentence in settings_without_effect(config, changes):
        typer.echo(f"Note: {sentence}", err=True)
    return Pipeline(Dataset.load(dataset, labelled=False), config)


def permissions_of_asker(corpus_dir: Path, person: str | None, may_see: list[str] | None) -> tuple[str, ...] | None:
    """Return the permissions of who asks, by name or by themselves; None where nothing is withheld."""
    from rag_lab.corpus.rules import permissions_of

    if person is not None and may_see is not None:
        raise ConfigError("Give --as or --may-see, not both: users.yaml says what a person may see.")
    if person is not None:
        return permissions_of(corpus_dir, person)
    return None if may_see is None else tuple(name for name in may_see if name)


def parse_slurm(given: Iterable[str]) -> dict[str, Any]:
    """Return what a scheduler is asked for, by key; of a YAML file where one is named."""
    from rag_lab._kit.config_file import parse_yaml, read_mapping

    found: dict[str, Any] = {}
    for one in given:
        key, equals, value = one.partition("=")
        if equals and key:
            found[key] = parse_yaml(value)
        elif Path(one).is_file():
            found |= read_mapping(one)
        else:
            raise ConfigError(f"--slurm {one!r} is neither key=value nor a YAML file of keys; write timeout_min=60.")
    return found
