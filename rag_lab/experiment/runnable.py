"""Which of the shipped presets can run on this machine as it is, and what each lacks. Nothing is loaded or fetched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rag_lab.config import PipelineConfig
from rag_lab.experiment.checkout import checkout_file
from rag_lab.experiment.model_checks import model_problem, models_used
from rag_lab.models.card.downloads import downloaded_folder
from rag_lab.models.failover.names import alternatives
from rag_lab.models.providers import CHAT_MODELS
from rag_lab.models.spec import split_name
from rag_lab.models.weights import find

_OF_WEIGHTS = ("transformers", "unsloth", "sentence_transformers")


@dataclass(frozen=True, slots=True)
class PresetState:
    """A preset, and why it cannot run here, a sentence each; none where it can."""

    name: str
    lacks: tuple[str, ...]


def shipped_presets() -> list[PresetState]:
    """Return the state of each preset, in order of their names."""
    return [
        PresetState(path.stem, tuple(dict.fromkeys(_lacks(PipelineConfig.load(path)))))
        for path in sorted(checkout_file("experiments/presets").glob("*.yaml"))
    ]


def _lacks(config: PipelineConfig) -> Iterator[str]:
    used = models_used(config)
    for model in dict.fromkeys(used.values()):
        roles = [role for role, other in used.items() if other == model]
        if problem := model_problem(roles[0], model):
            yield problem.replace(f"models.{roles[0]}", f"models.{'|'.join(roles)}")
        else:
            missing = [_not_here("|".join(roles), name) for name in alternatives(model)]
            yield from missing if all(missing) else ()


def _not_here(role: str, model: str) -> str:
    """Return that weights of the hub have not been downloaded, which the first use would do."""
    provider, name, _ = split_name(model, CHAT_MODELS)
    source = find(name) if provider in _OF_WEIGHTS else None
    if source is None or not source.on_hub or downloaded_folder(source.location):
        return ""
    return f"models.{role}: {source.location} has not been downloaded; its first use fetches it from the model hub."
