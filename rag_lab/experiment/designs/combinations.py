"""Which combinations of values are run by `grid`, `one_factor`, `random`, and by `staged` and `optuna` as planned."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from math import prod
from random import Random
from typing import Any, get_args

from rag_lab.experiment.designs.factors import (
    NOTHING_WANTED,
    Changes,
    ExperimentError,
    Factors,
    Wanted,
    check_size,
    first_values,
    settled,
)
from rag_lab.stages.steps import Group, step_of

RACING, STAGED, OPTUNA = "racing", "staged", "optuna"  # names of designs that choose before they prove
SAMPLERS = ("tpe", "nsga2")
MOST_DRAWN = 100_000  # combinations that are looked at, where `only_if` makes most of them the same as others


def grid(base: Mapping[str, Any], factors: Factors, wanted: Wanted = NOTHING_WANTED) -> list[Changes]:
    """Cross all values; first values are the baseline."""
    check_size(prod(len(values) for values in factors.values()), ", or use one_factor, fractional or random")
    return [dict(zip(factors, values, strict=True)) for values in product(*factors.values())]


def one_factor(base: Mapping[str, Any], factors: Factors, wanted: Wanted = NOTHING_WANTED) -> list[Changes]:
    """Leave the baseline, which first values make, in one factor at a time."""
    check_size(1 + sum(len(values) - 1 for values in factors.values()))
    first = first_values(factors)
    return [first, *(first | {key: value} for key, values in factors.items() for value in values[1:])]


def random_draw(base: Mapping[str, Any], factors: Factors, wanted: Wanted = NOTHING_WANTED) -> list[Changes]:
    """Return the baseline and `n - 1` other combinations, fixed by seed and factors, in the order of the grid.

    Each combination that the rules between factors leave as it is is as likely as any other. The whole grid where it
    has no more than `n`.
    """
    if wanted.n is None:
        raise ExperimentError(
            "n", ["n: missing; say how many variants the design random draws, the baseline included."]
        )
    check_size(wanted.n)
    size = prod(len(values) for values in factors.values())
    drawn = {0: first_values(factors)}  # by the place in the grid
    for place in Random(wanted.seed).sample(range(1, size), min(size - 1, MOST_DRAWN)):  # noqa: S311 (nothing secret)
        if len(drawn) >= wanted.n:
            break
        chosen, rest = Changes(), place
        for key in reversed(list(factors)):  # the last factor changes first
            rest, level = divmod(rest, len(factors[key]))
            chosen[key] = factors[key][level]
        choice = {key: chosen[key] for key in factors}
        if settled(base, choice, factors, wanted.only_if) == choice:
            drawn[place] = choice
    return [drawn[place] for place in sorted(drawn)]


def trial_placeholders(base: Mapping[str, Any], factors: Factors, wanted: Wanted = NOTHING_WANTED) -> list[Changes]:
    """Return as many random combinations as there will be trials, each value among them, so that each is checked."""
    if wanted.n is None:
        raise ExperimentError("n", ["n: missing; say how many trials the design optuna makes, the baseline included."])
    n = min(wanted.n, prod(len(values) for values in factors.values()))
    alone, drawn = one_factor(base, factors), random_draw(base, factors, replace(wanted, n=n))
    others = [one for one in drawn if one not in alone]
    return [*alone, *others[: max(0, n - len(alone))]]


def stages_of(factors: Factors) -> dict[str, tuple[str, ...]]:
    """Return the factors of each stage that has any, in the order of the pipeline; factors of one value are in none.

    What belongs to no stage is chosen last, with the answer.
    """
    stages: tuple[Group, ...] = get_args(Group)
    found: dict[str, tuple[str, ...]] = dict.fromkeys(stages, ())
    for key in (key for key, values in factors.items() if len(values) > 1):
        step = step_of(key)
        stage = step.group if step else stages[-1]
        if key.startswith("corpus.") or key in ("models.embedding", "models.vision"):
            stage = "corpus"
        found[stage] += (key,)
    return {stage: keys for stage, keys in found.items() if keys}


def stage_choices(factors: Factors, keys: tuple[str, ...], carried: Changes) -> list[Changes]:
    """Return all combinations of a stage's factors, the others as they are carried on; that one comes first."""
    crossed = (dict(zip(keys, values, strict=True)) for values in product(*(factors[key] for key in keys)))
    others = [carried | chosen for chosen in crossed]
    return [carried, *(one for one in others if one != carried)]


def staged(base: Mapping[str, Any], factors: Factors, wanted: Wanted = NOTHING_WANTED) -> list[Changes]:
    """Return each stage's combinations beside the baseline's other values: what would run if no stage changed it."""
    stages = stages_of(factors)
    check_size(sum(prod(len(factors[key]) for key in keys) for keys in stages.values()))
    first = first_values(factors)
    return [first, *(one for keys in stages.values() for one in stage_choices(factors, keys, first)[1:])]
