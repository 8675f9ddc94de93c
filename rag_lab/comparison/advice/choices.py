"""The variants of a run with what decides between them: their difference in the main metric, and their price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rag_lab._kit.wording import number
from rag_lab.comparison.advice import price
from rag_lab.comparison.advice.module_rows import ModuleRow, module_rows
from rag_lab.comparison.bounds.bound_arms import BOUNDS, bound_arms
from rag_lab.comparison.comparison import Comparison
from rag_lab.statistics.effects.factors import factor_values

Row = Mapping[str, Any]  # of a table of differences


@dataclass(frozen=True)
class Choices:
    """What there is to choose from in a run that has a main metric."""

    comparison: Comparison
    metric: str

    @property
    def reference(self) -> str | None:
        """What variants are set against: the baseline, or what all named pairs share; None where they share nothing."""
        run = self.comparison.run
        baseline = run.baseline
        if self.comparison.effects.is_grid or any(baseline in pair for pair in run.pairs) or not run.pairs:
            return baseline
        shared = {against for _, against in run.pairs}
        return shared.pop() if len(shared) == 1 else None

    @cached_property
    def rows(self) -> dict[str, Row]:
        """The difference of each variant from the reference that has an interval; bounds are no choice."""
        bounds = bound_arms(self.comparison)
        ids = [plan.variant_id for plan in self.comparison.variants if plan.variant_id not in bounds]
        found = {variant: self.comparison.pair(variant, self.reference or "", self.metric) for variant in ids}
        return {variant: row for variant, row in found.items() if row and number(row["low"]) is not None}

    @property
    def better(self) -> list[str]:
        """The variants that a primary finding makes better than the reference, the best first.

        In a grid the effects of modules are primary: there it is a variant with a level that is better over all
        settings of the others, and that is better by itself, too. What gains less than the margin is not among them.
        """
        found = [one for one in self._in_order if self.rows[one]["verdict"] == "better"]
        return [one for one in found if self._is_primary(one) and not self.may_go(one)]

    @property
    def promising(self) -> list[str]:
        """The variants that look better and are no finding, or one of a secondary comparison alone, the best first."""
        ahead = [one for one in self._in_order if self.sign * float(self.rows[one]["difference"]) > 0]
        looks = [one for one in ahead if self.rows[one]["doubt"] or self.rows[one]["verdict"] == "better"]
        return [one for one in looks if one not in self.better and not self.may_go(one)]

    def may_go(self, variant: str) -> bool:
        """Tell whether a variant is an addition that is shown to gain no more than the margin."""
        by = self.comparison.not_worse.get((self.metric, variant, self.reference or ""))
        return by is not None and by.is_found and by.is_addition

    @cached_property
    def better_levels(self) -> dict[str, ModuleRow]:
        """The levels of a grid that are better over all settings of the other modules, the best of each factor."""
        found: dict[str, ModuleRow] = {}
        for row in module_rows(self.comparison):
            is_bound = row.factor == "answer.context" and row.level in BOUNDS
            if row.factor and row.word == "better" and not row.is_lesser and not is_bound:
                found.setdefault(row.factor, row)
        return found

    @cached_property
    def levels(self) -> dict[str, dict[str, str]]:
        """The level of each factor under each variant."""
        changes = {plan.variant_id: plan.changes for plan in self.comparison.variants}
        return factor_values(changes, self.comparison.baseline_values)

    @property
    def _in_order(self) -> list[str]:
        """The variants that have a difference from the reference, the best mean first; failures count as the worst."""
        return [variant for variant in self.comparison.ranking["variant_id"] if variant in self.rows]

    def _is_primary(self, variant: str) -> bool:
        levels = self.better_levels if self.comparison.effects.is_grid else {}
        has_level = any(self.levels[variant].get(factor) == row.level for factor, row in levels.items())
        return has_level or self.rows[variant]["family"] == "primary"

    def is_dear(self, variant: str) -> bool:
        """Tell whether a variant takes many times what the reference takes, and no margin says whether that pays."""
        return self.metric not in self.comparison.run.margins and self.times(variant) > price.MANY_TIMES

    def times(self, variant: str) -> float:
        """Return how many times what the reference takes a variant takes."""
        ours, base = (self.comparison.prices.get(one or "", price.Price()) for one in (variant, self.reference))
        return ours.times(base)

    @property
    def near_best(self) -> list[str]:
        """The variants that are shown to be not worse than the best by more than the margin, the cheapest first."""
        table = self.comparison.not_worse_than_best
        return self.cheapest_first([str(one) for one in table.loc[table["is_not_worse"].astype(bool), "variant_id"]])

    @property
    def savings(self) -> list[str]:
        """The variants that are cheaper than the reference and that no interval puts behind it, the cheapest first."""
        return self.cheapest_first(
            [one for one, row in self.rows.items() if self.surplus(one).is_saving and not self.lags(row)]
        )

    @property
    def not_worse(self) -> list[str]:
        """The variants that save something and are not worse than the reference by the margin, the cheapest first."""
        answers = self.comparison.not_worse
        found = {one: answers.get((self.metric, one, self.reference or "")) for one in self.rows}
        kept = [one for one, by in found.items() if by and by.is_found and not by.is_addition and by.price.is_saving]
        return self.cheapest_first(kept)

    @property
    def best(self) -> str:
        """The variant with the best mean, failures counted as the worst."""
        order = self.comparison.ranking["variant_id"]
        return str(order[~order.isin([*bound_arms(self.comparison)])].iloc[0])

    def surplus(self, variant: str) -> price.Price:
        """Return how much more than the reference a variant takes."""
        return price.surplus(self.comparison.prices, variant, self.reference or "")

    def ends(self, row: Row) -> tuple[float, float]:
        """Return the worse and the better end of an interval."""
        low, high = float(row["low"]), float(row["high"])
        return (low, high) if self.sign > 0 else (high, low)

    def lags(self, row: Row) -> bool:
        """Tell whether an interval lies wholly on the worse side."""
        return self.sign * self.ends(row)[1] < 0

    @property
    def sign(self) -> int:
        """What a difference is multiplied with, so that more is better."""
        scale = self.comparison.scales.get(self.metric)
        return 1 if scale is None else scale.sign

    def cheapest_first(self, variants: Sequence[str]) -> list[str]:
        """Return variants by dollars, then by seconds that are noticed, and tokens.

        Of those that take the same, what is better comes first, then the reference, then the others by their means.
        """
        costs = self.comparison.prices
        order = [*self.better, self.reference, *self.comparison.ranking["variant_id"]]
        left = sorted(variants, key=lambda one: [value or 0.0 for value in costs.get(one, price.Price()).by_weight])
        found: list[str] = []
        while left:
            more = {one: price.surplus(costs, one, left[0]) for one in left}
            alike = [one for one in left if not more[one].is_costing]
            found += sorted(alike, key=lambda one: (not more[one].is_saving, order.index(one)))
            left = [one for one in left if one not in alike]
        return found
