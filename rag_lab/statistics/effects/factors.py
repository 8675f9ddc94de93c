"""Which variant has which level of which factor, and whether they make a full grid."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Literal

Levels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Factors:
    """A design, read off its variants. The first level of each factor is the baseline's.

    `cells` maps the levels of all factors, in the order of `levels`, to the variant that has them.
    """

    levels: dict[str, Levels]
    cells: dict[Levels, Any]
    kind: Literal["grid", "one_factor", "other"]
    reason: str = ""  # why it is no full grid

    @property
    def baseline(self) -> Any:
        """The variant with the first level of every factor."""
        return self.cells[tuple(levels[0] for levels in self.levels.values())]


def factor_values(
    changes: Mapping[Any, Mapping[str, Any]], baseline_values: Mapping[str, Any] | None = None
) -> dict[Any, dict[str, str]]:
    """Return the level of every factor for each variant, from what differs from the baseline in each.

    Args:
        changes: variant_id to {factor: value}, as in the plan of a run; a factor that is not named has its baseline
            value.
        baseline_values: {factor: value} of the baseline; without it that level is called `baseline`.
    """
    names = list(dict.fromkeys(name for values in changes.values() for name in values))
    base = {name: _text((baseline_values or {}).get(name, "baseline")) for name in names}
    return {
        variant: base | {name: _text(value) for name, value in values.items()} for variant, values in changes.items()
    }


def read_factors(values: Mapping[Any, Mapping[str, Any]], baseline: Any) -> Factors:
    """Return the design of variants given by the level of every factor.

    Args:
        values: variant_id to {factor: level}, the same factors for all.
        baseline: the variant whose levels come first; the others follow in order of appearance.

    Raises:
        ValueError: if `baseline` is no key of `values`, the factors differ, or two variants have the same levels.
    """
    if baseline not in values:
        raise ValueError(f"the baseline {baseline!r} is none of the variants: {', '.join(map(str, values))}")
    names = list(values[baseline])
    ordered = [baseline, *(variant for variant in values if variant != baseline)]
    if any(set(values[variant]) != set(names) for variant in ordered):
        raise ValueError("every variant must have a level of each factor")
    varied = [name for name in names if len({_text(values[variant][name]) for variant in ordered}) > 1]
    levels = {name: tuple(dict.fromkeys(_text(values[variant][name]) for variant in ordered)) for name in varied}
    cells = {tuple(_text(values[variant][name]) for name in varied): variant for variant in ordered}
    if len(cells) < len(ordered):
        raise ValueError("two variants have the same level of every factor")
    return Factors(levels, cells, *_kind(levels, cells))


def _kind(levels: dict[str, Levels], cells: Mapping[Levels, Any]) -> tuple[Literal["grid", "one_factor", "other"], str]:
    size = prod(len(one) for one in levels.values())
    if len(levels) > 1 and len(cells) == size:
        return "grid", ""
    first = tuple(one[0] for one in levels.values())
    if all(sum(a != b for a, b in zip(cell, first, strict=True)) <= 1 for cell in cells):
        return "one_factor", "one factor is changed at a time, so interactions cannot be seen"
    if 2 * len(cells) < size:
        return "other", "the variants differ in several settings at once"
    absent = next(cell for cell in product(*levels.values()) if cell not in cells)  # the grid may be huge
    example = ", ".join(f"{name}={level}" for name, level in zip(levels, absent, strict=True))
    return "other", f"the grid lacks {size - len(cells)} of {size} combinations (such as {example})"


def _text(value: Any) -> str:
    """Write a level as in YAML where that is one word; two equal values look the same."""
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, default=str)
