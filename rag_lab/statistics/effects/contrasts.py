"""What each module adds, alone and next to the others: the effects that a design can show.

An effect is a contrast, weights of variants that add up to zero, so it is one number a question, with the question as
its own block; its interval and its test are those of a paired difference. Montgomery, "Design and Analysis of
Experiments", chapter 5. In a full grid:

- main: level against first level of a factor, averaged over all combinations of the other factors' levels;
- interaction: how much the effect of one factor changes from the first level of another to a further one (difference
  of differences), averaged over the rest;
- conditional: the effect of one factor at one level of another, averaged over the rest.

In a balanced fraction of a grid the same, averaged over the runs that there are; interactions only where they are not
confounded with each other. In a nested grid over the cells where a factor can differ: where both sides are the same
pipeline by construction the difference is zero and says nothing of the factor, so it is left out of the mean; where two
differences are the same two pipelines, they count once. In any other design: each variant that leaves the baseline in
one factor (toggle).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import Any, Literal

import pandas as pd

from rag_lab.errors import ConfigError
from rag_lab.statistics.effects.factors import Factors, Levels, read_factors, words
from rag_lab.statistics.families import Hypothesis
from rag_lab.statistics.per_question import frame
from rag_lab.statistics.verdict import Answer

Kind = Literal["main", "interaction", "conditional", "toggle"]
Pair = tuple[Any, Any]
EFFECT_COLUMNS = (
    *("metric", "kind", "factor", "level", "first", "other", "other_level", "other_first"),
    *("n", "effect", "low", "high", "p_value", "p_corrected", "effect_size", "verdict", "doubt"),
    *("family", "smallest_difference"),
)
PRIMARY_KINDS = ("main", "interaction")  # in the metric that decides


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
    """Yield the effects that a full grid, a fraction, or a design without a grid can show."""
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


def contrasts_of(factors: Factors) -> Iterator[Contrast]:
    """Yield the effects that any design can show."""
    yield from _nested(factors) if factors.kind == "nested" else contrasts(factors)


def _nested(factors: Factors) -> Iterator[Contrast]:
    for name, levels in factors.levels.items():
        for level in levels[1:]:
            if pairs := _pairs(factors, name, level, {}):
                yield Contrast("main", name, level, levels[0], _mean(factors, pairs))
    for a, b in combinations(factors.levels, 2):
        yield from _nested_interactions(factors, a, b)
    for a, b in permutations(factors.levels, 2):
        for level in factors.levels[a][1:]:
            for held in factors.levels[b]:
                if pairs := _pairs(factors, a, level, {b: held}):
                    yield Contrast("conditional", a, level, factors.levels[a][0], _mean(factors, pairs), b, held)


def _nested_interactions(factors: Factors, a: str, b: str) -> Iterator[Contrast]:
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


@dataclass(frozen=True, slots=True)
class Effect:
    """A contrast of the design in a metric."""

    metric: Any
    contrast: Contrast
    is_primary: bool

    @property
    def hypothesis(self) -> Hypothesis:
        """That the module adds nothing."""
        return Hypothesis(self.metric, tuple(self.contrast.weights.items()), is_primary=self.is_primary)


def design_effects(scores: pd.DataFrame, factors: Factors, primary: Any = None) -> list[Effect]:
    """Return the effects that a design can show in every metric; `primary` decides, the first metric where None."""
    metrics = list(dict.fromkeys(scores["metric"]))
    first = metrics[0] if primary is None and metrics else primary
    return [
        Effect(metric, contrast, metric == first and contrast.kind in PRIMARY_KINDS)
        for metric in metrics
        for contrast in contrasts_of(factors)
    ]


def effects_table(wanted: Sequence[Effect], found: Mapping[Hypothesis, Answer]) -> pd.DataFrame:
    """Return one row an effect, in order.

    Columns:
        metric
        kind: main, interaction, conditional (of a full grid), or toggle
        factor, level, first: the effect is that of `level` against `first`
        other, other_level, other_first: of an interaction, the factor beside which the effect changes, from
            `other_first` to `other_level`; of a conditional effect, the level that the other factor has; else empty
        n: questions that all variants of the design have a score for (of a toggle: variant and baseline)
        effect, low, high: mean over questions, with its interval
        p_value, p_corrected, effect_size, verdict, doubt, family, smallest_difference: as in `differences_table`
    """
    rows: list[tuple[Any, ...]] = []
    for effect in wanted:
        c, answer = effect.contrast, found[effect.hypothesis]
        d = answer.difference
        what = (effect.metric, c.kind, c.factor, c.level, c.first, c.other, c.other_level, c.other_first)
        tested = (answer.p_value, answer.p_corrected, d.effect_size, answer.verdict, answer.doubt)
        rows.append((*what, d.n, d.mean, d.low, d.high, *tested, answer.family.name, answer.smallest_difference))
    return frame(rows, EFFECT_COLUMNS)


def design(
    scores: pd.DataFrame,
    values: Mapping[Any, Mapping[str, Any]],
    baseline: Any,
    *,
    planned: str = "",
    same: Iterable[tuple[Mapping[str, Any], Any]] = (),
) -> Factors:
    """Return the design of the variants that have any score; see `read_factors`."""
    present = set(scores.loc[scores["status"] == "scored", "variant_id"].unique()) | {baseline}
    try:
        known = {variant: one for variant, one in values.items() if variant in present}
        return read_factors(known, baseline, planned=planned, same=same)
    except ValueError as error:
        raise ConfigError(f"No effects can be computed: {error}.") from None
