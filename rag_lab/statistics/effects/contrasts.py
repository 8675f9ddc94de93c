"""The effects that a design can show, as contrasts: weights of variants that add up to zero.

Montgomery, "Design and Analysis of Experiments", chapter 5. In a full grid:

- main: level against first level of a factor, averaged over all combinations of the other factors' levels;
- interaction: how much the effect of one factor changes from the first level of another to a further one (difference
  of differences), averaged over the rest;
- conditional: the effect of one factor at one level of another, averaged over the rest.

In a balanced fraction of a grid the same, averaged over the runs that there are; interactions only where they are not
confounded with each other. A run that is the same pipeline as another counts by the scores of that.

In any other design: each variant that leaves the baseline in one factor (toggle).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any, Literal

from rag_lab.statistics.effects.aliases import words
from rag_lab.statistics.effects.factors import Factors

Kind = Literal["main", "interaction", "conditional", "toggle"]


@dataclass(frozen=True, slots=True)
class Contrast:
    """An effect as weights of variants; see `effects` for the names."""

    kind: Kind
    factor: str
    level: str
    first: str
    weights: dict[Any, float]
    other: str = ""
    other_level: str = ""
    other_first: str = ""


def contrasts(factors: Factors) -> Iterator[Contrast]:
    """Yield the effects that a design can show."""
    if factors.kind not in ("grid", "fraction"):
        yield from _toggles(factors)
        return
    for name, levels in factors.levels.items():
        for level in levels[1:]:
            yield Contrast("main", name, level, levels[0], _weights(factors, {name: level}, {name: levels[0]}))
    if factors.kind == "fraction" and confounds_pairs(factors):
        return
    for a, b in combinations(factors.levels, 2):
        yield from _interactions(factors, a, b)
    for a, b in permutations(factors.levels, 2):
        first = factors.levels[a][0]
        for level in factors.levels[a][1:]:
            for held in factors.levels[b]:
                weights = _weights(factors, {a: level, b: held}, {a: first, b: held})
                yield Contrast("conditional", a, level, first, weights, b, held)


def confounds_pairs(factors: Factors) -> bool:
    """Tell whether interactions of two factors are confounded with main effects or each other: no more can be told."""
    return bool(words(list(factors.runs), longest=4))


def _interactions(factors: Factors, a: str, b: str) -> Iterator[Contrast]:
    a_first, b_first = factors.levels[a][0], factors.levels[b][0]
    for level in factors.levels[a][1:]:
        for held in factors.levels[b][1:]:
            beside = _weights(factors, {a: level, b: held}, {a: a_first, b: held})
            alone = _weights(factors, {a: level, b: b_first}, {a: a_first, b: b_first})
            weights = {variant: beside[variant] - alone[variant] for variant in beside}
            yield Contrast("interaction", a, level, a_first, weights, b, held, b_first)


def _toggles(factors: Factors) -> Iterator[Contrast]:
    first = [levels[0] for levels in factors.levels.values()]
    for cell, variant in factors.cells.items():
        changed = [(name, now, was) for name, now, was in zip(factors.levels, cell, first, strict=True) if now != was]
        if len(changed) == 1:
            yield Contrast("toggle", *changed[0], weights={variant: 1.0, factors.baseline: -1.0})


def _weights(factors: Factors, plus: Mapping[str, str], minus: Mapping[str, str]) -> dict[Any, float]:
    """Return the mean over the cells with the levels `plus`, minus that over those with `minus`.

    All variants are named, those that play no part with weight 0: a question must have all scores to count, so that all
    effects of a grid are about the same questions.
    """
    names = list(factors.levels)

    def share(wanted: Mapping[str, str]) -> dict[Any, float]:
        named = [(variant, dict(zip(names, cell, strict=True))) for cell, variant in factors.runs.items()]
        members = [variant for variant, levels in named if wanted.items() <= levels.items()]
        return {variant: n / len(members) for variant, n in Counter(members).items()}

    ours, theirs = share(plus), share(minus)
    return {variant: ours.get(variant, 0.0) - theirs.get(variant, 0.0) for variant in factors.cells.values()}
