"""From a name, or an object, to the stage at one place of the pipeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rag_lab._kit.own_code import OwnCode
from rag_lab._kit.registry import Kind, Module, own
from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.errors import ConfigError
from rag_lab.stages.checked_stage import CheckedStage
from rag_lab.stages.own_stage import OwnStage, Place
from rag_lab.stages.parts import Parts
from rag_lab.stages.stage import Stage

_WHOLE = ("name", "reads", "writes", "batch_size", "costly", "identity", "run")


def stage_of(kind: Kind, slot: str, name: str, parts: Parts, place: Callable[[], Place], *more: Any) -> Stage:
    """Return the stage that `parts.given` holds for `slot`, else the one that `name` names.

    What is built in is a factory that takes `parts`, and `more` where its kind needs it. A module of one's own is
    called as `place` says; it may be a whole `Stage` instead.

    Raises:
        ConfigError: if there is no such module, or it cannot be used here.
    """
    if slot not in parts.given and name in kind.built_in:
        stage: Stage = kind.find(name).made(parts, *more)
        return stage
    module = own(parts.given[slot], kind) if slot in parts.given else kind.find(name)
    return own_stage(kind, module, place(), parts.index)


def own_stage(kind: Kind, module: Module, place: Place, index: CorpusIndex) -> Stage:
    """Return the stage that a module of one's own makes at `place`."""
    return whole_stage(kind, module, place.writes, index) or OwnStage(place, code_of(kind, module))


def whole_stage(kind: Kind, module: Module, sets: tuple[str, ...], index: CorpusIndex) -> Stage | None:
    """Return a module that is a whole `Stage`, held to its contract, or None where it is none."""
    if not all(hasattr(module.made, name) for name in _WHOLE):
        return None
    return CheckedStage(module.made, code_of(kind, module, "run"), sets, index.is_visible)


def code_of(kind: Kind, module: Module, method: str | None = None) -> OwnCode:
    """Return a module of one's own as something that is called.

    Raises:
        ConfigError: if it cannot be called, or says that it is of another kind.
    """
    said = getattr(module.made, "stage_kind", kind.name)
    if said != kind.name:
        raise ConfigError(f"{module.name!r} says that it is a {said}, and stands where a {kind.name} is due.")
    return OwnCode(module, f"{kind.name} {module.name!r}", method)
