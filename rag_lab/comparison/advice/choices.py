"""The variants of a run with what decides between them: their difference in the main metric, and their price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rag_lab._kit.numbers import number
from rag_lab.comparison.advice import price
from rag_lab.comparison.comparison import Comparison
from rag_lab.statistics.pairwise import comparisons

Row = Mapping[str, Any]  # of a table of differences


@dataclass(frozen=True)
class Choices:
    """What there is to choose from in a run that has a main metric."""

    comparison: Comparison
    metric: str

    @cached_property
    def rows(self) -> dict[str, Row]:
        """The difference of each variant from the baseline that could be told with an interval."""
        ids = [plan.variant_id for plan in self.comparison.variants]
        found = {variant: self.comparison.difference(variant, self.metric) for variant in ids}
        return {variant: row for variant, row in found.items() if row and number(row["low"]) is not None}

    @property
    def better(self) -> list[str]:
        """The variants that are reliably better than the baseline, the best first, failures counted as the worst."""
        order = self.comparison.ranking["variant_id"]
        return [variant for variant in order if self.comparison.reliable(variant, self.metric) > 0]

    @property
    def savings(self) -> list[str]:
        """The variants that are cheaper than the baseline and that no interval puts behind it, the cheapest first."""
        base = self.comparison.run.baseline
        return self._cheapest_first(
            [one for one, row in self.rows.items() if self._saves(one, base) and not self.lags(row)]
        )

    def instead(self, best: str, others: Sequence[str]) -> Row | None:
        """Return how the cheapest of `others` that is as good as `best`, and cheaper or simpler, differs from it.

        As good is what its interval does not put behind `best`; only that is used, so no test is made that would count
        among the others. Simpler is what changes fewer settings of the baseline and costs no more.
        """
        scores = self.comparison.scores
        ours = scores[(scores["metric"] == self.metric) & scores["variant_id"].isin([best, *others])]
        table = comparisons(ours, best, options=self.comparison.options)
        rows = {str(row["variant_id"]): {str(key): row[key] for key in row} for row in table.to_dict("records")}
        known = {one: row for one, row in rows.items() if number(row["low"]) is not None}
        found = [one for one, row in known.items() if self._saves(one, best, simpler=True) and not self.lags(row)]
        return known[self._cheapest_first(found)[0]] if found else None

    def surplus(self, variant: str) -> price.Price:
        """Return how much more than the baseline a variant takes."""
        return price.surplus(self.comparison.prices, variant, self.comparison.run.baseline)

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

    def _saves(self, variant: str, other: str, simpler: bool = False) -> bool:
        more = price.surplus(self.comparison.prices, variant, other)
        fewer = simpler and self._n_changes(variant) < self._n_changes(other)
        return more.is_saving or (fewer and more.is_same)

    def _n_changes(self, variant: str) -> int:
        return next(len(plan.changes) for plan in self.comparison.variants if plan.variant_id == variant)

    def _cheapest_first(self, variants: Sequence[str]) -> list[str]:
        costs = self.comparison.prices

        def key(one: str) -> tuple[float, float, float]:
            took = (costs[one].seconds or 0.0) // price.NOTICED_S
            return costs[one].usd or 0.0, took, costs[one].tokens or 0.0

        return sorted(variants, key=key)
