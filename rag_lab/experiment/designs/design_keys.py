"""Which keys of an experiment belong to which designs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_lab._kit.wording import listing
from rag_lab.experiment.designs.combinations import OPTUNA
from rag_lab.experiment.designs.stages import STAGED

_COUNTED = {"random": "variants the design random draws", OPTUNA: "trials the design optuna makes"}
RESOLUTIONS = (3, 10)  # that can be asked for

DESIGNS_OF: Mapping[str, tuple[str, ...]] = {
    "n": ("fractional", "random", OPTUNA),
    "resolution": ("fractional",),
    "choose": (STAGED, OPTUNA),
    "objectives": (OPTUNA,),
    "sampler": (OPTUNA,),
}


def key_problems(design: str, given: Mapping[str, Any], *, runs_pipelines: bool) -> list[str]:
    """Return a sentence for each key that says nothing to this design; `given` is what an experiment says of it.

    Args:
        design: of the experiment.
        given: the keys of `DESIGNS_OF` and `only_if`, with their values.
        runs_pipelines: whether the pipelines under `variants` are run.
    """
    found = [
        f"{key}: belongs to the design {listing(list(designs)).replace(' and ', ' or ')}, got {design}; take it out."
        for key, designs in DESIGNS_OF.items()
        if given.get(key) not in (None, []) and design not in designs
    ]
    if given.get("only_if") and runs_pipelines:
        found.append("only_if: holds between factors, and the pipelines under `variants` are run as they are.")
    if design in _COUNTED and given.get("n") is None:
        found.append(f"n: missing; say how many {_COUNTED[design]}, the baseline included.")
    return found
