"""Which metrics the trials of a search are to improve."""

from __future__ import annotations

from contextlib import suppress

from rag_lab._kit.wording import listing
from rag_lab.errors import ConfigError
from rag_lab.experiment.config import ExperimentConfig
from rag_lab.experiment.designs.combinations import OPTUNA
from rag_lab.experiment.race.questions import deciding


def objectives(experiment: ExperimentConfig) -> list[str]:
    """Return the objectives as the experiment names them: those that it gives, else its first two metrics."""
    return experiment.objectives or experiment.metrics[:2]


def objective_problems(experiment: ExperimentConfig) -> list[str]:
    """Return a sentence for each thing that is wrong with the objectives of a search by trials."""
    if experiment.design != OPTUNA:
        return []
    given, metrics = objectives(experiment), experiment.metrics
    found = [
        f"objectives: {name} is none of the metrics, which are {listing(metrics) if metrics else 'none'}; put it there."
        for name in given
        if name not in metrics
    ]
    with suppress(ConfigError):  # which the check of the metrics says
        first = deciding(metrics)
        names = {name for name in metrics if first and deciding([name]) and deciding([name]) == first}
        if first and not found and not names & set(given):
            found.append(
                f"objectives: {first.name} decides what is proven, so that it must be one of them; name it, or put "
                "another metric first."
            )
    return found
