"""The design `random`: the baseline and combinations drawn from the grid, none twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from math import prod
from random import Random
from typing import Any

from rag_lab.experiment.designs.choices import Changes, Factors, Wanted, check_size
from rag_lab.experiment.designs.only_if import settled
from rag_lab.experiment.experiment_error import ExperimentError

MOST_DRAWN = 100_000  # combinations that are looked at, where `only_if` makes most of them the same as others

_NOTHING = Wanted()


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
