"""Which stage of the pipeline a factor belongs to, and the design `staged` as it is planned: stage by stage."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any, get_args

from rag_lab.experiment.designs.factors import Changes, Factors, Wanted, check_size, first_values
from rag_lab.stages.steps import Group, step_of

STAGED = "staged"  # the name of the design
STAGES: tuple[Group, ...] = get_args(Group)
_NOTHING = Wanted()


def stage_of(key: str) -> str:
    """Return the stage to which a dotted key belongs; what belongs to none is chosen last, with the answer."""
    if key.startswith("corpus.") or key in ("models.embedding", "models.vision"):
        return "corpus"
    step = step_of(key)
    return step.group if step else STAGES[-1]


def stages_of(factors: Factors) -> dict[str, tuple[str, ...]]:
    """Return the factors of each stage that has any, in the order of the pipeline; factors of one value are in none."""
    varied = [key for key, values in factors.items() if len(values) > 1]
    found = {stage: tuple(key for key in varied if stage_of(key) == stage) for stage in STAGES}
    return {stage: keys for stage, keys in found.items() if keys}


def stage_choices(factors: Factors, keys: tuple[str, ...], carried: Changes) -> list[Changes]:
    """Return all combinations of a stage's factors, the others as they are carried on; that one comes first."""
    crossed = (dict(zip(keys, values, strict=True)) for values in product(*(factors[key] for key in keys)))
    others = [carried | chosen for chosen in crossed]
    return [carried, *(one for one in others if one != carried)]


def staged(base: Mapping[str, Any], factors: Factors, wanted: Wanted = _NOTHING) -> list[Changes]:
    """Return each stage's combinations beside the baseline's other values: what would run if no stage changed it."""
    stages = stages_of(factors)
    check_size(sum(prod(len(factors[key]) for key in keys) for keys in stages.values()))
    first = first_values(factors)
    return [first, *(one for keys in stages.values() for one in stage_choices(factors, keys, first)[1:])]
