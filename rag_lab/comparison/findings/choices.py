"""The variants of a run with what decides between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from rag_lab._kit.wording import counted, plain, signed
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.statements import Verdict, module_rows, pair_verdict
from rag_lab.comparison.tables.bounds import BOUNDS, bound_arms
from rag_lab.comparison.tables.prices import MANY_TIMES, Price, surplus
from rag_lab.statistics.effects.factors import factor_values

_MOST_SAVINGS = 2  # cheaper variants that are told one by one


@dataclass(frozen=True)
class Choices:
    """What there is to choose from in a run that has a main metric."""

    comparison: Comparison
    metric: str

    @cached_property
    def reference(self) -> str | None:
        """What variants are set against: the baseline, or what all named pairs share; None where they share nothing."""
        run = self.comparison.run
        if self.comparison.effects.is_grid or any(run.baseline in pair for pair in run.pairs) or not run.pairs:
            return run.baseline
        shared = {against for _, against in run.pairs}
        return shared.pop() if len(shared) == 1 else None

    @property
    def reference_name(self) -> str:
        """What variants are set against, for a sentence."""
        is_baseline = self.reference in (None, self.comparison.run.baseline)
        return "the baseline" if is_baseline else self.comparison.called(self.reference or "")

    @cached_property
    def rows(self) -> dict[str, Verdict]:
        """The verdict on each variant against the reference that has an interval; bounds are no choice."""
        tables, bounds, against = self.comparison, bound_arms(self.comparison), self.reference or ""
        ids = [plan.variant_id for plan in tables.variants if plan.variant_id not in bounds]
        compared = [variant for variant in ids if tables.pair(variant, against, self.metric)]
        found = {variant: pair_verdict(tables, variant, against, self.metric) for variant in compared}
        return {variant: one for variant, one in found.items() if one.low is not None}

    @cached_property
    def better(self) -> list[str]:
        """The variants that a primary finding makes better than the reference, the best first.

        In a grid the effects of modules are primary: there it is a variant with a level that is better over all
        settings of the others, and that is better by itself, too. What gains less than the margin is not among them.
        """
        levels = self.better_levels if self.comparison.effects.is_grid else {}
        return [
            variant
            for variant in self._in_order
            if self.rows[variant].row["verdict"] == "better" and not self.rows[variant].gains_little
            if self.rows[variant].row["family"] == "primary"
            or any(self.levels[variant].get(factor) == row.level for factor, row in levels.items())
        ]

    @cached_property
    def promising(self) -> list[str]:
        """The variants that look better and are no finding, or one of a secondary comparison alone, the best first."""
        found = []
        for variant in self._in_order:
            one = self.rows[variant]
            looks = one.row["doubt"] or one.row["verdict"] == "better"
            if looks and self.gain(one) > 0 and variant not in self.better and not one.gains_little:
                found.append(variant)
        return found

    @cached_property
    def better_levels(self) -> dict[str, Verdict]:
        """The levels of a grid that are better over all settings of the other modules, the best of each factor."""
        found: dict[str, Verdict] = {}
        for row in module_rows(self.comparison):
            is_bound = row.factor == "answer.context" and row.level in BOUNDS
            if row.factor and row.word == "better" and not row.gains_little and not is_bound:
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

    def gain(self, one: Verdict) -> float:
        """Return the difference of a variant from the reference, positive where it is better."""
        return self.comparison.sign(self.metric) * (one.effect or 0.0)

    def ends(self, one: Verdict) -> tuple[float, float]:
        """Return the worse and the better end of the interval of a verdict."""
        low, high = float(one.low or 0.0), float(one.high or 0.0)
        return (low, high) if self.comparison.sign(self.metric) > 0 else (high, low)

    def times(self, variant: str) -> float:
        """Return how many times what the reference takes a variant takes."""
        ours, base = (self.comparison.prices.get(one or "", Price()) for one in (variant, self.reference))
        return ours.times(base)

    def is_dear(self, variant: str) -> bool:
        """Tell whether a variant takes many times what the reference takes, and no margin says whether that pays."""
        return self.metric not in self.comparison.run.margins and self.times(variant) > MANY_TIMES

    @cached_property
    def near_best(self) -> list[str]:
        """The variants that are shown to be not worse than the best by more than the margin, the cheapest first."""
        table = self.comparison.not_worse_than_best
        return self.cheapest_first([str(one) for one in table.loc[table["is_not_worse"].astype(bool), "variant_id"]])

    def surplus(self, variant: str) -> Price:
        """Return how much more than the reference a variant takes."""
        return surplus(self.comparison.prices, variant, self.reference or "")

    def cheapest_first(self, variants: Sequence[str]) -> list[str]:
        """Return variants by dollars, then by seconds that are noticed, and tokens.

        Of those that take the same, what is better comes first, then the reference, then the others by their means.
        """
        costs = self.comparison.prices
        order = [*self.better, self.reference, *self.comparison.ranking["variant_id"]]
        prices = {one: costs.get(one, Price()) for one in variants}
        left = sorted(
            variants, key=lambda one: [prices[one].usd or 0, prices[one].seconds or 0, prices[one].tokens or 0]
        )
        found: list[str] = []
        while left:
            more = {one: surplus(costs, one, left[0]) for one in left}
            alike = [one for one in left if not more[one].is_costing]
            found += sorted(alike, key=lambda one: (not more[one].is_saving, order.index(one)))
            left = [one for one in left if one not in alike]
        return found

    def gain_text(self, variant: str) -> str:
        """Say what a better variant gains: `it raises ndcg@5 by 0.1 [0.05 to 0.15] and costs 1.9 s …`."""
        one = self.rows[variant]
        ends = sorted(abs(end or 0.0) for end in (one.low, one.high))
        size = f"{plain(abs(one.effect or 0.0))} [{plain(ends[0])} to {plain(ends[1])}]"
        verb, metric = "raises" if (one.effect or 0.0) > 0 else "lowers", self.comparison.directed(self.metric)
        return f"it {verb} {metric} by {size} and {self.surplus(variant).sentence}"

    def savings(self) -> list[str]:
        """Say what the variants would save that no interval puts behind the reference, and what each may cost."""
        sign, told = self.comparison.sign(self.metric), []
        cheaper = [variant for variant in self.rows if self.surplus(variant).is_saving]
        found = self.cheapest_first([one for one in cheaper if sign * self.ends(self.rows[one])[1] >= 0])
        for one in (self.rows[variant] for variant in found[:_MOST_SAVINGS]):
            may = f"by its 95% interval it changes {self.metric} by {signed(self.ends(one)[0])} at worst"
            if one.is_equal:
                blind = f"; but {self.metric} reads only the {one.unchanged}, which it does not change"
                may = f"it scores the same on every question{blind if one.unchanged else ''}"
            told.append(f"{one.called} {self.surplus(one.variant_id).sentence}: {may}.")
        more = len(found) - len(told)
        return [*told, f"{counted(more, 'more variant')} would save something."] if more > 0 else told

    def margin_hint(self) -> str:
        """Say how the report could tell what pays; "" where a margin was declared or none can be."""
        scale = self.comparison.scales.get(self.metric)
        if self.metric in self.comparison.run.margins or scale is None or scale.width is None:
            return ""
        return (
            "A margin, the largest loss that you would accept, says what pays and what may be left out: `margin: "
            f"{{{self.metric}: …}}` in the experiment file before it runs, or then `rag-lab report RUN --margin "
            f"{self.metric}=…`."
        )

    def margin_not_met(self) -> list[str]:
        """Say that nothing was shown by the margin of the metric, or nothing that would be recommended."""
        margin = self.comparison.run.margins.get(self.metric)
        if margin is None:
            return []
        near_best = f"shown to be not worse than the best by more than {margin:g}"
        if not self.near_best:
            return [f"No variant is {near_best}."]
        name = self.comparison.called(self.near_best[0])
        return [f"{name} is {near_best}, but costs more than {self.reference_name}, and no gain is shown that pays it."]
