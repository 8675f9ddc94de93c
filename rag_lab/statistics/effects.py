"""What each module adds, alone and next to the others: the factors of a design, and the effects that it can show.

An effect is a contrast, weights of variants that add up to zero, so it is one number a question, with the question as
its own block; its interval and its test are those of a paired difference. Montgomery, "Design and Analysis of
Experiments", chapter 5. In a full grid:

- main: level against first level of a factor, averaged over all combinations of the other factors' levels;
- interaction: how much the effect of one factor changes from the first level of another to a further one (difference
  of differences), averaged over the rest;
- conditional: the effect of one factor at one level of another, averaged over the rest.

In a *nested* grid some combinations were not run, since another variant is the same pipeline by construction: a rule
for HyDE means nothing without HyDE. Effects are then over the cells where a factor can differ: where both sides are the
same pipeline the difference is zero and says nothing of the factor, so it is left out of the mean; where two
differences are the same two pipelines, they count once.

A *fraction* is a part of the grid of factors with two levels in which every two factors have all pairs of their levels
equally often. Box and Hunter (1961), "The 2^(k-p) Fractional Factorial Designs": a *word* is a set of factors whose
product is the same in every run. An effect is confounded with every other that a word makes of it: in a fraction with
the word ABC, A with B × C. The *resolution* is the length of the shortest word. Effects are averaged over the runs that
there are; interactions only where they are not confounded with each other.

In any other design: each variant that leaves the baseline in one factor (toggle).
"""

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations, permutations, product
from math import prod
from operator import xor
from typing import Any, Literal

import pandas as pd

from rag_lab.statistics.families import Hypothesis
from rag_lab.statistics.summaries import frame
from rag_lab.statistics.verdict import Answer

Word = frozenset[int]  # places of factors

LONGEST = 6  # of the words that are looked for; effects of longer ones are confounded with nothing that is likely
Levels = tuple[str, ...]
Kind = Literal["grid", "nested", "fraction", "one_factor", "other"]
GRIDS: tuple[Kind, ...] = ("grid", "nested", "fraction")  # those that have main effects
GRID = "grid"  # the design of an experiment in which all combinations are run
FRACTIONAL = "fractional"  # the design of an experiment in which a balanced part of them is run


def words(runs: Sequence[Sequence[Hashable]], longest: int = LONGEST) -> list[Word]:
    """Return the words of a fraction with at most `longest` factors, the shortest first; none of a full grid.

    `runs` has the level of each factor in each run, of two levels a factor.
    """
    columns = [_bits([run[place] != runs[0][place] for run in runs]) for place in range(len(runs[0]))]
    sizes = range(1, min(longest, len(columns)) + 1)
    places = (chosen for size in sizes for chosen in combinations(range(len(columns)), size))
    return [frozenset(chosen) for chosen in places if not reduce(xor, (columns[place] for place in chosen))]


def is_balanced(runs: Sequence[Sequence[Hashable]]) -> bool:
    """Tell whether every two factors have all four pairs of their levels equally often."""
    n = len(runs)
    columns = [_bits([run[place] != runs[0][place] for run in runs]) for place in range(len(runs[0]))]
    sums = (reduce(xor, pair) for size in (1, 2) for pair in combinations(columns, size))
    return all(2 * one.bit_count() == n for one in sums)


def _bits(values: Sequence[bool]) -> int:
    return sum(1 << place for place, value in enumerate(values) if value)


@dataclass(frozen=True, slots=True)
class Factors:
    """A design, read off its variants. The first level of each factor is the baseline's."""

    levels: dict[str, Levels]
    cells: dict[Levels, Any]  # the levels of all factors, in the order of `levels`, to the variant that has them
    kind: Kind
    reason: str = ""  # why it is no full grid
    same: dict[Levels, Any] = field(default_factory=dict)  # those not run, to the variant that is the same pipeline

    @property
    def runs(self) -> dict[Levels, Any]:
        """Every combination that the design holds, with the variant that was run for it."""
        return {**self.cells, **self.same}

    @property
    def baseline(self) -> Any:
        """The variant with the first level of every factor."""
        return self.cells[tuple(levels[0] for levels in self.levels.values())]


def factor_values(
    changes: Mapping[Any, Mapping[str, Any]], baseline_values: Mapping[str, Any] | None = None
) -> dict[Any, dict[str, str]]:
    """Return the level of every factor for each variant, from the values that differ from the baseline's."""
    names = list(dict.fromkeys(name for values in changes.values() for name in values))
    base = {name: level_text((baseline_values or {}).get(name, "baseline")) for name in names}
    return {
        variant: base | {name: level_text(value) for name, value in values.items()}
        for variant, values in changes.items()
    }


def read_factors(
    values: Mapping[Any, Mapping[str, Any]],
    baseline: Any,
    *,
    planned: str = "",
    same: Iterable[tuple[Mapping[str, Any], Any]] = (),
) -> Factors:
    """Return the design of variants that have a level of every factor.

    Args:
        values: variant_id to {factor: level}, the same factors for all.
        baseline: the variant whose levels come first; the others follow in order of appearance.
        planned: the design of the experiment; only a grid and a fraction can lack combinations.
        same: the levels of each combination that was not run, with the variant that is the same pipeline; a factor
            that is not named has the baseline's level.

    Raises:
        ValueError: if `baseline` is no key of `values`, the factors differ, or two variants have the same levels.
    """
    if baseline not in values:
        raise ValueError(f"the baseline {baseline!r} is none of the variants: {', '.join(map(str, values))}")
    names = list(values[baseline])
    ordered = [baseline, *(variant for variant in values if variant != baseline)]
    if any(set(values[variant]) != set(names) for variant in ordered):
        raise ValueError("every variant must have a level of each factor")
    varied = [name for name in names if len({level_text(values[variant][name]) for variant in ordered}) > 1]
    levels = {name: tuple(dict.fromkeys(level_text(values[variant][name]) for variant in ordered)) for name in varied}
    cells = {tuple(level_text(values[variant][name]) for name in varied): variant for variant in ordered}
    if len(cells) < len(ordered):
        raise ValueError("two variants have the same level of every factor")
    alike = {}
    for of_cell, variant in same:
        cell = tuple(level_text(of_cell.get(name, one[0])) for name, one in levels.items())
        is_in_grid = all(level in known for level, known in zip(cell, levels.values(), strict=True))
        if cell not in cells and variant in values and is_in_grid:
            alike[cell] = variant
    kind, reason = _kind(levels, cells, alike, planned)
    return Factors(levels, cells, kind, reason, alike if kind in ("nested", "fraction") else {})


def _kind(
    levels: dict[str, Levels], cells: Mapping[Levels, Any], alike: Mapping[Levels, Any], planned: str
) -> tuple[Kind, str]:
    size = prod(len(one) for one in levels.values())
    if len(levels) > 1 and len(cells) == size:
        return "grid", ""
    if len(levels) > 1 and len(cells) + len(alike) == size:
        are = "is the same pipeline as another" if len(alike) == 1 else "are the same pipelines as others"
        return "nested", f"{len(alike)} of the {size} combinations {are} by construction"
    if planned == FRACTIONAL and len(levels) > 1:
        runs = [*cells, *alike]
        if all(len(one) == 2 for one in levels.values()) and size % len(runs) == 0 and is_balanced(runs):
            return "fraction", f"{len(runs)} of the {size} combinations are run"
        return "other", f"{len(runs)} combinations are left of the fraction, which are not balanced"
    if planned == GRID and len(levels) > 1:
        known = {*cells, *alike}
        absent = next(cell for cell in product(*levels.values()) if cell not in known)  # the grid may be huge
        example = ", ".join(f"{name}={level}" for name, level in zip(levels, absent, strict=True))
        return "other", f"the grid lacks {size - len(known)} of {size} combinations (such as {example})"
    first = tuple(one[0] for one in levels.values())
    if all(sum(a != b for a, b in zip(cell, first, strict=True)) <= 1 for cell in cells):
        return "one_factor", "one factor is changed at a time, so interactions cannot be seen"
    return "other", "the variants differ in several settings at once"


def level_text(value: Any) -> str:
    """Return the value of a factor as its level: as in YAML where that is one word; two equal values look the same."""
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, default=str)


EffectKind = Literal["main", "interaction", "conditional", "toggle"]
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

    kind: EffectKind
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
    effect = _effect_over_runs if is_fraction else _effect_over_pairs
    for name, levels in factors.levels.items():
        for level in levels[1:]:
            if weights := effect(factors, name, level, {}):
                yield Contrast("main", name, level, levels[0], weights)
    if is_fraction and words(list(factors.runs), longest=4):
        return  # interactions of two factors are confounded with main effects or each other
    for a, b in combinations(factors.levels, 2):
        a_first, b_first = factors.levels[a][0], factors.levels[b][0]
        for level, other in product(factors.levels[a][1:], factors.levels[b][1:]):
            if is_fraction:
                with_other, without = (effect(factors, a, level, {b: one}) for one in (other, b_first))
                weights = {variant: with_other[variant] - without[variant] for variant in with_other}
            else:
                weights = _change_over_pairs(factors, a, level, b, other)
            if weights:
                yield Contrast("interaction", a, level, a_first, weights, b, other, b_first)
    for a, b in permutations(factors.levels, 2):
        for level, other in product(factors.levels[a][1:], factors.levels[b]):
            if weights := effect(factors, a, level, {b: other}):
                yield Contrast("conditional", a, level, factors.levels[a][0], weights, b, other)


def _effect_over_runs(factors: Factors, name: str, level: str, fixed: dict[str, str]) -> Weights:
    """Return the mean over the runs with `level` and what is `fixed`, minus that over those with the first level."""
    runs = [(variant, dict(zip(factors.levels, cell, strict=True))) for cell, variant in factors.runs.items()]
    weights = dict.fromkeys(factors.cells.values(), 0.0)
    for one, sign in ((level, 1.0), (factors.levels[name][0], -1.0)):
        wanted = fixed | {name: one}
        members = [variant for variant, levels in runs if wanted.items() <= levels.items()]
        for variant, n in Counter(members).items():
            weights[variant] += sign * (n / len(members))
    return weights


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
    metrics = scores["metric"].unique().tolist()
    first = metrics[0] if primary is None and metrics else primary
    return [
        Effect(metric, contrast, metric == first and contrast.kind in PRIMARY_KINDS)
        for metric in metrics
        for contrast in contrasts(factors)
    ]


def effects_table(wanted: Sequence[Effect], found: Mapping[Hypothesis, Answer]) -> pd.DataFrame:
    """Return one row an effect, in order.

    Columns:
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
