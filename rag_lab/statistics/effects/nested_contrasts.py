"""The effects of a grid in which some combinations are the same pipeline: over the cells where a factor can differ.

As in a full grid (Montgomery, "Design and Analysis of Experiments", chapter 5) an effect is a mean of differences
between two levels, other things being equal. Where both sides are the same pipeline by construction the difference is
zero and says nothing of the factor, so it is left out of the mean; where two differences are the same two pipelines,
they count once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, permutations, product
from typing import Any

from rag_lab.statistics.effects.contrasts import Contrast, contrasts
from rag_lab.statistics.effects.factors import Factors, Levels

Pair = tuple[Any, Any]


def contrasts_of(factors: Factors) -> Iterator[Contrast]:
    """Yield the effects that a design can show, a nested grid's among them."""
    yield from _nested(factors) if factors.kind == "nested" else contrasts(factors)


def _nested(factors: Factors) -> Iterator[Contrast]:
    for name, levels in factors.levels.items():
        for level in levels[1:]:
            if pairs := _pairs(factors, name, level, {}):
                yield Contrast("main", name, level, levels[0], _mean(factors, pairs))
    for a, b in combinations(factors.levels, 2):
        yield from _interactions(factors, a, b)
    for a, b in permutations(factors.levels, 2):
        for level in factors.levels[a][1:]:
            for held in factors.levels[b]:
                if pairs := _pairs(factors, a, level, {b: held}):
                    yield Contrast("conditional", a, level, factors.levels[a][0], _mean(factors, pairs), b, held)


def _interactions(factors: Factors, a: str, b: str) -> Iterator[Contrast]:
    a_first, b_first = factors.levels[a][0], factors.levels[b][0]
    for level, held in product(factors.levels[a][1:], factors.levels[b][1:]):
        found: dict[tuple[Pair, Pair], None] = {}
        for cell in _cells(factors, {a: a_first, b: b_first}):
            corners = [_variant(factors, cell, {a: x, b: y}) for x, y in product((level, a_first), (held, b_first))]
            both, alone_a, alone_b, neither = corners
            sides = ((both, alone_b), (alone_a, neither), (both, alone_a), (alone_b, neither))
            if all(one != other for one, other in sides):  # else one of the two means nothing beside the other
                found[sides[:2]] = None
        if found:
            plus, minus = (_mean(factors, [one[side] for one in found]) for side in (0, 1))
            weights = {variant: plus[variant] - minus[variant] for variant in plus}
            yield Contrast("interaction", a, level, a_first, weights, b, held, b_first)


def _pairs(factors: Factors, name: str, level: str, held: dict[str, str]) -> list[Pair]:
    """Return the different pipelines that differ in one factor alone, at these levels of others."""
    first = factors.levels[name][0]
    cells = _cells(factors, held | {name: first})
    pairs = ((_variant(factors, cell, {name: level}), _variant(factors, cell, {})) for cell in cells)
    return list(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]))


def _cells(factors: Factors, held: dict[str, str]) -> Iterable[Levels]:
    return product(*((held[name],) if name in held else levels for name, levels in factors.levels.items()))


def _variant(factors: Factors, cell: Levels, changes: dict[str, str]) -> Any:
    """Return what was run for a combination with some of its levels changed."""
    changed = tuple(changes.get(name, level) for name, level in zip(factors.levels, cell, strict=True))
    return factors.cells[changed] if changed in factors.cells else factors.same[changed]


def _mean(factors: Factors, pairs: Iterable[Pair]) -> dict[Any, float]:
    """Return the mean of differences as weights; all variants are named, so that effects are of the same questions."""
    pairs = list(pairs)
    weights = dict.fromkeys(factors.cells.values(), 0.0)
    for one, other in pairs:
        weights[one] += 1 / len(pairs)
        weights[other] -= 1 / len(pairs)
    return weights
