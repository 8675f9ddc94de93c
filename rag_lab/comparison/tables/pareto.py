"""The Pareto fronts of a run: which variants no other beats in the main metric and in what a question takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from rag_lab.comparison.tables.bounds import BOUNDS, bound_arms
from rag_lab.comparison.tables.costs import NOTICED_S, NOTICED_SHARE, NOTICED_TOKENS, Price, answered
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.records import StageRecord, Trace
from rag_lab.statistics.intervals import FEW_CLUSTERS, FEW_VALUES, Interval, mean_intervals
from rag_lab.statistics.pareto import Means, Quantity, Tolerance, differ, fronts, medians
from rag_lab.statistics.summaries import UNKNOWN, cluster_labels, per_question, unit_places, with_failures_at

Cost = Literal["seconds", "tokens", "usd"]
COSTS: tuple[Cost, ...] = get_args(Cost)
SELDOM = 0.05  # of the resamples: who leaves or joins a front in fewer is not named
_TOLERANCES = {
    "seconds": Tolerance(NOTICED_S),
    "tokens": Tolerance(NOTICED_TOKENS, NOTICED_SHARE),
    "usd": Tolerance(0.0, NOTICED_SHARE),
}


def question_costs(traces: Sequence[Sequence[Trace]], place_of: Mapping[str, int]) -> dict[Cost, Quantity]:
    """Return the amounts of a `Price` on units that can be drawn again: under equal weights they are that price.

    `traces` are those of each variant, at least one; `place_of` is the unit, from 0, of each question.
    """
    timed = [answered(one) or one for one in traces]
    took = [np.array([sum(record.seconds for record in trace.stages) for trace in one]) for one in timed]
    places = [np.array([place_of[trace.question.question_id] for trace in one], dtype=np.intp) for one in timed]
    names = dict.fromkeys(record.stage for one in traces for trace in one for record in trace.stages)
    stages = {name: number for number, name in enumerate(names)}
    shape = (max(place_of.values()) + 1, len(traces), max(len(stages), 1))
    records: list[StageRecord] = []
    cells: list[int] = []
    for variant, one in enumerate(traces):
        for trace in one:
            records += trace.stages
            unit = place_of[trace.question.question_id]
            cells += [(unit * shape[1] + variant) * shape[2] + stages[record.stage] for record in trace.stages]
    cell = np.array(cells, dtype=np.intp)

    def summed(amounts: list[float]) -> npt.NDArray[np.float64]:
        # A sum of floats depends on its order in the last digit, and no result may depend on the order of the rows.
        values, sums = np.array(amounts, dtype=float), np.zeros(shape)
        order = np.lexsort((values, cell))
        np.add.at(sums.ravel(), cell[order], values[order])
        return sums

    def means(amounts: list[float]) -> Means:
        """Return the means over the runs of each stage, without the stages that took nothing."""
        sums = summed(amounts)
        took_any = (sums > 0).any(axis=(0, 1))
        return Means(sums[:, :, took_any], runs[:, :, took_any])

    runs = summed([1.0] * len(records))
    tokens = [float(record.tokens_in + record.tokens_out) for record in records]
    usd = [record.cost_usd for record in records]
    return {"seconds": medians(took, places), "tokens": means(tokens), "usd": means(usd)}


def question_values(tables: RunTables, metric: str) -> pd.DataFrame:
    """Return a row a question and a column a variant, as `variant_order` counts them; NaN where it was not asked.

    In a metric without a worst value a question that failed is as one that was not asked.
    """
    scores = per_question(tables.scores, [metric])
    worst = tables.scales.get(metric, UNKNOWN).worst
    cells = scores.assign(value=with_failures_at(scores, worst), there=1.0)
    wide = cells.pivot(index="question_id", columns="variant_id", values="value").sort_index()
    if worst is None:
        return wide
    there = cells.pivot(index="question_id", columns="variant_id", values="there").sort_index()
    return wide.where(there.notna(), worst)


def quality_of(values: pd.DataFrame, place_of: Mapping[str, int], sign: int) -> Means:
    """Return the means of the variants over units of questions, by the place of each; more is better."""
    shape = (max(place_of.values()) + 1, values.shape[1], 1)
    sums, counts = np.zeros(shape), np.zeros(shape)
    places = [place_of[name] for name in values.index]
    cells = values.to_numpy(dtype=float)
    np.add.at(sums[:, :, 0], places, sign * np.nan_to_num(cells))
    np.add.at(counts[:, :, 0], places, np.isfinite(cells))
    return Means(sums, counts)


def quality_intervals(tables: RunTables, values: pd.DataFrame, metric: str) -> dict[str, Interval]:
    """Return the mean of each variant with its interval: that of the table of scores where nothing failed."""
    found = {}
    for variant in values.columns:
        cell = tables.cell(variant, metric) or {}
        if len(values) == cell.get("scored"):
            found[variant] = Interval(cell["mean"], cell["low"], cell["high"], cell["scored"], cell["reason"])
    others = [variant for variant in values.columns if variant not in found]
    scale = tables.scales.get(metric, UNKNOWN)
    columns = [values[variant].dropna() for variant in others]
    groups = [cluster_labels(column.index, tables.clusters) for column in columns] if tables.clusters else None
    ends = [(scale.low, scale.high)] * len(columns)
    with_failures = mean_intervals([column.tolist() for column in columns], clusters=groups, ranges=ends)
    return found | dict(zip(others, with_failures, strict=True))


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
    def moves(self) -> tuple[dict[str, float], dict[str, float]]:
        """Members that are off the front, and others that are on it, each in which share of resamples: 5% or more."""
        leaving = {one: 1 - self.shares[one] for one in self.members if one in self.shares}
        joining = {one: share for one, share in self.shares.items() if one not in self.members}
        often = [{one: share for one, share in found.items() if share >= SELDOM} for found in (leaving, joining)]
        return often[0], often[1]


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
    amounts = {cost: [getattr(price, cost) for price in taken.values()] for cost in COSTS}
    costs = tuple(cost for cost in COSTS if None not in amounts[cost] and differ(amounts[cost], _TOLERANCES[cost]))
    # What is drawn again are questions, or clusters of them, in the order of the ids of their first questions.
    asked = [trace.question.question_id for variant in values.columns for trace in tables.traces[variant]]
    unit_of = unit_places([*asked, *values.index], tables.clusters)
    n_units = len({unit_of[name] for name in values.index[values.notna().any(axis=1)]})
    made = []
    if costs:
        took = question_costs([tables.traces[variant] for variant in taken], unit_of)
        which = [(cost,) for cost in costs] + ([costs] if len(costs) > 1 else [])
        places = [[costs.index(cost) for cost in each] for each in which]
        quality = quality_of(values, unit_of, tables.sign(metric))
        on_front, shares_on = fronts(quality, [(took[cost], _TOLERANCES[cost]) for cost in costs], places)
        are_few = n_units < (FEW_VALUES if tables.clusters is None else FEW_CLUSTERS)
        for each, on, shares in zip(which, on_front.tolist(), shares_on.tolist(), strict=True):
            members = [variant for variant, is_on in zip(taken, on, strict=True) if is_on]
            cheapest_first = tuple(sorted(members, key=lambda one: float(getattr(taken[one], each[0]))))
            made.append(Front(each, cheapest_first, {} if are_few else dict(zip(taken, shares, strict=True))))
    note = "" if costs else "All variants take about the same, so quality alone decides."
    if None in amounts["usd"]:
        note = "Dollars are left out: a model that was called has no price in any table."
    return CostFronts(
        quality=quality_intervals(tables, values, metric),
        prices=taken,
        fronts=tuple(made),
        left_out=left_out,
        n_units=n_units,
        note=note,
    )


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
