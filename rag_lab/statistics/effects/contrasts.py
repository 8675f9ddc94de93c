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

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import Any, Literal

import pandas as pd

from rag_lab.errors import ConfigError
from rag_lab.statistics.effects.factors import GRIDS, Factors, Levels, read_factors, words
from rag_lab.statistics.families import Hypothesis
from rag_lab.statistics.per_question import frame
from rag_lab.statistics.verdict import Answer

Kind = Literal["main", "interaction", "conditional", "toggle"]
Pair = tuple[Any, Any]
Weights = dict[Any, float]
EFFECT_COLUMNS = (
    *("metric", "kind", "factor", "level", "first", "other", "other_level", "other_first"),
    *("n", "effect", "low", "high", "p_value", "p_corrected", "effect_size", "verdict", "doubt"),
    *("family", "smallest_difference"),
)
PRIMARY_KINDS = ("main", "interaction")  # in the metric that decides


@dataclass(frozen=True, slots=True)
class Contrast:
    """An effect as weights of variants."""

    kind: Kind
    factor: str
    level: str
    first: str
    weights: Weights
    other: str = ""
    other_level: str = ""
    other_first: str = ""


def contrasts(factors: Factors) -> Iterator[Contrast]:
    """Yield the effects that a design can show."""
    if factors.kind not in GRIDS:
        first = [levels[0] for levels in factors.levels.values()]
        for cell, variant in factors.cells.items():
            both = zip(factors.levels, cell, first, strict=True)
            changed = [(name, now, was) for name, now, was in both if now != was]
            if len(changed) == 1:
                yield Contrast("toggle", *changed[0], weights={variant: 1.0, factors.baseline: -1.0})
        return
    is_fraction = factors.kind == "fraction"
    effect, change = (_effect_over_runs, _change_over_runs) if is_fraction else (_effect_over_pairs, _change_over_pairs)
    for name, levels in factors.levels.items():
        for level in levels[1:]:
            if weights := effect(factors, name, level, {}):
                yield Contrast("main", name, level, levels[0], weights)
    if is_fraction and words(list(factors.runs), longest=4):
        return  # interactions of two factors are confounded with main effects or each other
    for a, b in combinations(factors.levels, 2):
        a_first, b_first = factors.levels[a][0], factors.levels[b][0]
        for level, other in product(factors.levels[a][1:], factors.levels[b][1:]):
            if weights := change(factors, a, level, b, other):
                yield Contrast("interaction", a, level, a_first, weights, b, other, b_first)
    for a, b in permutations(factors.levels, 2):
        for level, other in product(factors.levels[a][1:], factors.levels[b]):
            if weights := effect(factors, a, level, {b: other}):
                yield Contrast("conditional", a, level, factors.levels[a][0], weights, b, other)


def _effect_over_runs(factors: Factors, name: str, level: str, fixed: dict[str, str]) -> Weights:
    """Return the mean over the runs with `level` and what is `fixed`, minus that over those with the first level."""

    def share(wanted: dict[str, str]) -> dict[Any, float]:
        runs = [(variant, dict(zip(factors.levels, cell, strict=True))) for cell, variant in factors.runs.items()]
        members = [variant for variant, levels in runs if wanted.items() <= levels.items()]
        return {variant: n / len(members) for variant, n in Counter(members).items()}

    ours, theirs = share(fixed | {name: level}), share(fixed | {name: factors.levels[name][0]})
    return {variant: ours.get(variant, 0.0) - theirs.get(variant, 0.0) for variant in factors.cells.values()}


def _change_over_runs(factors: Factors, a: str, level: str, b: str, other: str) -> Weights:
    with_other = _effect_over_runs(factors, a, level, {b: other})
    without = _effect_over_runs(factors, a, level, {b: factors.levels[b][0]})
    return {variant: with_other[variant] - without[variant] for variant in with_other}


def _effect_over_pairs(factors: Factors, name: str, level: str, fixed: dict[str, str]) -> Weights:
    """Return the mean over the different pipelines that differ in one factor alone; nothing where there are none."""
    cells = _cells(factors, fixed | {name: factors.levels[name][0]})
    pairs = ((_variant(factors, cell, {name: level}), _variant(factors, cell, {})) for cell in cells)
    return _mean(factors, list(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1])))


def _change_over_pairs(factors: Factors, a: str, level: str, b: str, other: str) -> Weights:
    a_first, b_first = factors.levels[a][0], factors.levels[b][0]
    found: dict[tuple[Pair, Pair], None] = {}
    for cell in _cells(factors, {a: a_first, b: b_first}):
        corners = [_variant(factors, cell, {a: x, b: y}) for x, y in product((level, a_first), (other, b_first))]
        both, alone_a, alone_b, neither = corners
        sides = ((both, alone_b), (alone_a, neither), (both, alone_a), (alone_b, neither))
        if all(one != other for one, other in sides):  # else one of the two means nothing without the other
            found[sides[:2]] = None
    plus, minus = (_mean(factors, [one[side] for one in found]) for side in (0, 1))
    return {variant: plus[variant] - minus[variant] for variant in plus}


def _cells(factors: Factors, fixed: dict[str, str]) -> Iterable[Levels]:
    return product(*((fixed[name],) if name in fixed else levels for name, levels in factors.levels.items()))


def _variant(factors: Factors, cell: Levels, changes: dict[str, str]) -> Any:
    """Return what was run for a combination with some of its levels changed."""
    changed = tuple(changes.get(name, level) for name, level in zip(factors.levels, cell, strict=True))
    return factors.cells[changed] if changed in factors.cells else factors.same[changed]


def _mean(factors: Factors, pairs: Sequence[Pair]) -> Weights:
    """Return the mean of differences as weights; nothing where there are none.

    All variants are named, those that play no part with weight 0: a question must have all scores to count, so that all
    effects of a grid are about the same questions.
    """
    weights = dict.fromkeys(factors.cells.values(), 0.0) if pairs else {}
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
        for contrast in contrasts(factors)
    ]


def effects_table(wanted: Sequence[Effect], found: Mapping[Hypothesis, Answer]) -> pd.DataFrame:
    """Return one row an effect, in order.

    Columns:
        kind: main, interaction, conditional (of a full grid), or toggle
        factor, level, first: the effect is that of `level` against `first`
        other, other_level, other_first: of an interaction, the factor next to which the effect changes, from
            `other_first` to `other_level`; of a conditional effect, the level that the other factor has; else empty
        n: questions that all variants of the design have a score for (of a toggle: variant and baseline)
        effect, low, high: mean over questions, with its interval; the rest as in `differences_table`
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
