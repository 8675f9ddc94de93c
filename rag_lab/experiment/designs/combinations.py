"""The designs `grid`, `one_factor`, `random` and `optuna` as it is planned: which combinations of values are run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice, product
from math import prod
from random import Random
from typing import Any

from rag_lab.experiment.designs.factors import Changes, Factors, Wanted, check_size, first_values, settled
from rag_lab.experiment.experiment_error import ExperimentError

OPTUNA = "optuna"  # the name of the design
SAMPLERS = ("tpe", "nsga2")
MOST_DRAWN = 100_000  # combinations that are looked at, where `only_if` makes most of them the same as others

_NOTHING = Wanted()


def grid(base: Mapping[str, Any], factors: Factors, wanted: Wanted = _NOTHING) -> list[Changes]:
    """Cross all values; first values are the baseline."""
    check_size(prod(len(values) for values in factors.values()), ", or use one_factor, fractional or random")
    return [dict(zip(factors, values, strict=True)) for values in product(*factors.values())]


def one_factor(base: Mapping[str, Any], factors: Factors, wanted: Wanted = _NOTHING) -> list[Changes]:
    """Leave the baseline, which first values make, in one factor at a time."""
    check_size(1 + sum(len(values) - 1 for values in factors.values()))
    first = first_values(factors)
    return [first, *(first | {key: value} for key, values in factors.items() for value in values[1:])]


def random_draw(base: Mapping[str, Any], factors: Factors, wanted: Wanted = _NOTHING) -> list[Changes]:
    """Return the baseline and `n - 1` other combinations, fixed by seed and factors, in the order of the grid.

    Each combination that the rules between factors leave as it is is as likely as any other. The whole grid where it
    has no more than `n`.

    Raises:
        ExperimentError: if nobody says how many.
    """
    if wanted.n is None:
        raise ExperimentError(
            "n", ["n: missing; say how many variants the design random draws, the baseline included."]
        )
    check_size(wanted.n)
    drawn = islice(_drawn(base, factors, wanted), wanted.n - 1)
    return [_combination(factors, place) for place in (0, *sorted(drawn))]


def _drawn(base: Mapping[str, Any], factors: Factors, wanted: Wanted) -> Iterator[int]:
    """Yield places in the grid in random order, without that of the baseline, 0, and those that a rule changes."""
    size = prod(len(values) for values in factors.values())
    for place in Random(wanted.seed).sample(range(1, size), min(size - 1, MOST_DRAWN)):  # noqa: S311 (nothing secret)
        choice = _combination(factors, place)
        if settled(base, choice, factors, wanted.only_if) == choice:
            yield place


def _combination(factors: Factors, place: int) -> Changes:
    """Return a combination of the grid by its place, the last factor changing first."""
    chosen: Changes = {}
    for key in reversed(list(factors)):
        place, level = divmod(place, len(factors[key]))
        chosen[key] = factors[key][level]
    return {key: chosen[key] for key in factors}


def trial_placeholders(base: Mapping[str, Any], factors: Factors, wanted: Wanted = _NOTHING) -> list[Changes]:
    """Return as many random combinations as there will be trials, each value among them, so that each is checked.

    Raises:
        ExperimentError: if nobody says how many.
    """
    if wanted.n is None:
        raise ExperimentError("n", ["n: missing; say how many trials the design optuna makes, the baseline included."])
    n = min(wanted.n, prod(len(values) for values in factors.values()))
    alone, drawn = one_factor(base, factors), random_draw(base, factors, replace(wanted, n=n))
    others = [one for one in drawn if one not in alone]
    return [*alone, *others[: max(0, n - len(alone))]]
