"""From a name, or an object, to the stage at one place of the pipeline."""

from __future__ import annotations

from collections.abc import Callable

from rag_lab._kit.own_code import OwnCode
from rag_lab._kit.registry import Kind, Module, own
from rag_lab.stages.checked_stage import CheckedStage
from rag_lab.stages.own_stage import OwnStage, Place
from rag_lab.stages.parts import Parts
from rag_lab.stages.stage import Stage

_WHOLE = ("name", "reads", "writes", "batch_size", "costly", "identity", "run")


def stage_of(kind: Kind, slot: str, name: str, parts: Parts, place: Callable[[], Place]) -> Stage:
    """Return the stage that `parts.given` holds for `slot`, else the one that `name` names.

    What is built in is a factory that takes `parts`. A module of one's own is called as `place` says; it may be a whole
    `Stage` instead.

    Raises:
        ConfigError: if there is no such module, or it cannot be used here.
    """
    if slot not in parts.given and name in kind.built_in:
        stage: Stage = kind.find(name).made(parts)
        return stage
    module = own(parts.given[slot], kind) if slot in parts.given else kind.find(name)
    return own_stage(kind, module, place())


def own_stage(kind: Kind, module: Module, place: Place) -> Stage:
    """Return the stage that a module of one's own makes at `place`."""
    what = f"{kind.name} {module.name!r}"
    if all(hasattr(module.made, name) for name in _WHOLE):
        return CheckedStage(module.made, OwnCode(module, what, "run"), place.writes)
    return OwnStage(place, OwnCode(module, what))
