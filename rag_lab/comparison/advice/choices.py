"""The variants of a run with what decides between them: their difference in the main metric, and their price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rag_lab._kit.numbers import number
from rag_lab.comparison.advice import price
from rag_lab.comparison.bounds.bound_arms import bound_arms
from rag_lab.comparison.comparison import Comparison

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
        """The variants that are reliably better than the reference, the best first, failures counted as the worst."""
        order = self.comparison.ranking["variant_id"]
        return [variant for variant in order if variant in self.rows and self.rows[variant]["verdict"] == "better"]

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
        """Return variants by dollars, then by seconds that are noticed, tokens, and how many settings they change."""
        costs = self.comparison.prices
        changes = {plan.variant_id: len(plan.changes) for plan in self.comparison.variants}

        def key(one: str) -> tuple[float, float, float, int]:
            took = costs.get(one, price.Price())
            return took.usd or 0.0, (took.seconds or 0.0) // price.NOTICED_S, took.tokens or 0.0, changes[one]

        return sorted(variants, key=key)
