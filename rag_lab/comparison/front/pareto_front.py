"""The Pareto fronts of a run: which variants no other beats in the main metric and in what a question takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from rag_lab.comparison.advice.price import NOTICED_S, NOTICED_SHARE, NOTICED_TOKENS, Price
from rag_lab.comparison.bounds.bound_arms import BOUNDS, bound_arms
from rag_lab.comparison.front.question_costs import question_costs
from rag_lab.comparison.front.question_quality import quality_intervals, quality_of, question_values
from rag_lab.comparison.run_tables import RunTables
from rag_lab.statistics.intervals import FEW_CLUSTERS, FEW_VALUES, Interval
from rag_lab.statistics.pareto import Quantity, Tolerance, differ, fronts
from rag_lab.statistics.per_question import unit_places
from rag_lab.statistics.scales import UNKNOWN

if TYPE_CHECKING:
    import pandas as pd

Cost = Literal["seconds", "tokens", "usd"]
COSTS: tuple[Cost, ...] = get_args(Cost)
SELDOM = 0.05  # of the resamples: who leaves or joins a front in fewer is not named
_TOLERANCES = {
    "seconds": Tolerance(NOTICED_S),
    "tokens": Tolerance(NOTICED_TOKENS, NOTICED_SHARE),
    "usd": Tolerance(0.0, NOTICED_SHARE),
}


@dataclass(frozen=True, slots=True)
class Front:
    """The variants to which no other is at once at least as good and as cheap, and better or cheaper.

    costs: against what; several are taken together, and a variant is beaten only by one that beats it in all.
    members: from the cheapest, by the first of the costs.
    shares: of resamples in which each variant that was compared is on the front; empty where they are too few.
    """

    costs: tuple[Cost, ...]
    members: tuple[str, ...]
    shares: Mapping[str, float]

    @property
    def leaving(self) -> dict[str, float]:
        """The members that are off the front in 5% of resamples or more, with the share of these."""
        found = {one: 1 - self.shares[one] for one in self.members if one in self.shares}
        return {one: share for one, share in found.items() if share >= SELDOM}

    @property
    def joining(self) -> dict[str, float]:
        """The variants off the front that are on it in 5% of resamples or more, with the share of these."""
        others = {one: share for one, share in self.shares.items() if one not in self.members}
        return {one: share for one, share in others.items() if share >= SELDOM}


@dataclass(frozen=True, slots=True)
class CostFronts:
    """Quality against what a question takes.

    quality: by variant the mean of the main metric with its interval, a failure counted as the worst value.
    prices: of the same variants.
    fronts: one against each cost that differs, and where several do one against all of them together.
    left_out: variants that have no place, with the reason.
    n_units: questions, or clusters, that were resampled.
    note: why there is no front, or what is missing; "" where nothing is.
    """

    quality: Mapping[str, Interval] = field(default_factory=dict)
    prices: Mapping[str, Price] = field(default_factory=dict)
    fronts: tuple[Front, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    n_units: int = 0
    note: str = ""

    @property
    def costs(self) -> tuple[Cost, ...]:
        """The costs that differ among the variants."""
        return tuple(front.costs[0] for front in self.fronts if len(front.costs) == 1)

    def against(self, *costs: Cost) -> Front | None:
        """Return the front against these costs, or None where they do not differ."""
        return next((front for front in self.fronts if front.costs == costs), None)


def pareto_fronts(tables: RunTables, prices: Mapping[str, Price]) -> CostFronts:
    """Return the fronts of the main metric; it never raises, and says why there are none."""
    metric = tables.main_metric
    if metric is None or tables.scores.empty:
        return CostFronts(note="No quality was measured, so none stands against what it costs.")
    left_out = _left_out(tables, metric, prices)
    taken = {plan.variant_id: prices[plan.variant_id] for plan in tables.variants if plan.variant_id not in left_out}
    if len(taken) < 2:
        return CostFronts(left_out=left_out, note="There are not two variants with scores and a price to choose from.")
    values = question_values(tables, metric)[list(taken)]
    units = _Units.of(tables, values)
    costs = tuple(cost for cost in COSTS if _differ(cost, taken))
    return CostFronts(
        quality=quality_intervals(tables, values, metric),
        prices=taken,
        fronts=_fronts(tables, values, taken, units, costs) if costs else (),
        left_out=left_out,
        n_units=units.n_scored,
        note=_note(taken, costs),
    )


@dataclass(frozen=True, slots=True)
class _Units:
    """What is drawn again: questions, or clusters of them, in the order of the ids of their first questions.

    place_of: the unit of each question.
    n_scored: units with a score.
    are_few: whether resampling them says nothing.
    """

    place_of: Mapping[str, int]
    n_scored: int
    are_few: bool

    @classmethod
    def of(cls, tables: RunTables, values: pd.DataFrame) -> _Units:
        traces = (trace for variant in values.columns for trace in tables.traces[variant])
        place_of = unit_places([*(trace.question.question_id for trace in traces), *values.index], tables.clusters)
        scored = len({place_of[name] for name in values.index[values.notna().any(axis=1)]})
        return cls(place_of, scored, scored < (FEW_VALUES if tables.clusters is None else FEW_CLUSTERS))


def _fronts(
    tables: RunTables, values: pd.DataFrame, prices: Mapping[str, Price], units: _Units, costs: tuple[Cost, ...]
) -> tuple[Front, ...]:
    scale = tables.scales.get(str(tables.main_metric), UNKNOWN)
    took = question_costs([tables.traces[variant] for variant in prices], units.place_of)
    amounts: list[tuple[Quantity, Tolerance]] = [(getattr(took, cost), _TOLERANCES[cost]) for cost in costs]
    which = [(cost,) for cost in costs] + ([costs] if len(costs) > 1 else [])
    places = [[costs.index(cost) for cost in each] for each in which]
    found = fronts(quality_of(values, units.place_of, scale.sign), amounts, places)
    shares = [{} if units.are_few else dict(zip(prices, row, strict=True)) for row in found.shares.tolist()]
    return tuple(
        Front(each, _cheapest_first(prices, on, each[0]), share)
        for each, on, share in zip(which, found.on.tolist(), shares, strict=True)
    )


def _cheapest_first(prices: Mapping[str, Price], are_on: list[bool], cost: Cost) -> tuple[str, ...]:
    on = [variant for variant, is_on in zip(prices, are_on, strict=True) if is_on]
    return tuple(sorted(on, key=lambda variant: float(getattr(prices[variant], cost))))


def _differ(cost: Cost, prices: Mapping[str, Price]) -> bool:
    """Tell whether a cost is known of all, and more of one than of another."""
    amounts = [getattr(price, cost) for price in prices.values()]
    return None not in amounts and differ(amounts, _TOLERANCES[cost])


def _left_out(tables: RunTables, metric: str, prices: Mapping[str, Price]) -> dict[str, str]:
    found, bounds = {}, bound_arms(tables)
    for plan in tables.variants:
        cell = tables.cell(plan.variant_id, metric)
        if plan.variant_id in tables.failed:
            found[plan.variant_id] = tables.state(plan.variant_id)
        elif plan.variant_id in bounds:
            found[plan.variant_id] = f"a bound, which reads {BOUNDS[bounds[plan.variant_id]]}"
        elif not cell or not cell["scored"]:
            found[plan.variant_id] = "no scores"
        elif prices.get(plan.variant_id, Price()).seconds is None:
            found[plan.variant_id] = "no traces, so what it takes is not known"
    return found


def _note(prices: Mapping[str, Price], costs: tuple[Cost, ...]) -> str:
    if any(price.usd is None for price in prices.values()):
        return "Dollars are left out: a model that was called has no price in any table."
    return "" if costs else "All variants take about the same, so quality alone decides."
