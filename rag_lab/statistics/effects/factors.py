"""Which variant has which level of which factor, whether they make a full grid, and what a fraction cannot separate.

In a *nested* grid some combinations were not run, since another variant is the same pipeline by construction: a rule
for HyDE means nothing without HyDE. A *fraction* is a part of the grid of factors with two levels in which every two
factors have all pairs of their levels equally often. Box and Hunter (1961), "The 2^(k-p) Fractional Factorial Designs":
a *word* is a set of factors whose product is the same in every run. An effect is confounded with every other that a
word makes of it: in a fraction with the word ABC, A with B × C. The *resolution* is the length of the shortest word.
"""

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations, product
from math import prod
from operator import xor
from typing import Any, Literal

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


def aliases_of(effect: Word, among: Sequence[Word]) -> list[Word]:
    """Return the effects of fewest factors that words make of this one, the shortest first."""
    found = [effect ^ word for word in among]
    return sorted((one for one in found if one), key=lambda one: (len(one), sorted(one)))


def _bits(values: Sequence[bool]) -> int:
    return sum(1 << place for place, value in enumerate(values) if value)


@dataclass(frozen=True, slots=True)
class Factors:
    """A design, read off its variants. The first level of each factor is the baseline's.

    `cells` maps the levels of all factors, in the order of `levels`, to the variant that has them; `same` those of a
    nested grid or a fraction that were not run to the variant that is the same pipeline.
    """

    levels: dict[str, Levels]
    cells: dict[Levels, Any]
    kind: Kind
    reason: str = ""  # why it is no full grid
    same: dict[Levels, Any] = field(default_factory=dict)

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
    """Return the level of every factor for each variant, from the {factor: value} that differ from the baseline.

    Without `baseline_values` the level of the baseline is called `baseline`.
    """
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
