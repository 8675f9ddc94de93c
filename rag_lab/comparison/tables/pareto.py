"""The Pareto fronts of a run: which variants no other beats in the main metric and in what a question takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from rag_lab.comparison.tables.bounds import BOUNDS, bound_arms
from rag_lab.comparison.tables.prices import NOTICED_S, NOTICED_SHARE, NOTICED_TOKENS, Price
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.comparison.tables.stage_tables import as_answered
from rag_lab.records import Trace
from rag_lab.statistics.intervals import FEW_CLUSTERS, FEW_VALUES, Interval, mean_intervals
from rag_lab.statistics.pareto import Means, Medians, Quantity, Tolerance, differ, fronts, medians
from rag_lab.statistics.per_question import cluster_labels, numbers, per_question, unit_places, with_failures_at
from rag_lab.statistics.scales import UNKNOWN

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class QuestionCosts:
    """The three amounts of a `Price`, on units that can be drawn again: under equal weights they are that price."""

    seconds: Medians
    tokens: Means
    usd: Means


def question_costs(traces: Sequence[Sequence[Trace]], place_of: Mapping[str, int]) -> QuestionCosts:
    """Return what the questions took.

    Args:
        traces: of each variant, at least one.
        place_of: the unit, from 0, of each question that has a trace.
    """
    timed = [as_answered(one) for one in traces]
    took = [np.array([sum(record.seconds for record in trace.stages) for trace in one]) for one in timed]
    places = [np.array([place_of[trace.question.question_id] for trace in one], dtype=np.intp) for one in timed]
    stages = {name: number for number, name in enumerate(_stage_names(traces))}
    shape = (max(place_of.values()) + 1, len(traces), max(len(stages), 1))
    found = [
        (place_of[trace.question.question_id], variant, stages[record.stage], record)
        for variant, one in enumerate(traces)
        for trace in one
        for record in trace.stages
    ]
    cells = [np.array(column, dtype=np.intp) for column in zip(*((a, b, c) for a, b, c, _ in found), strict=True)]
    cell = np.ravel_multi_index(tuple(cells), shape) if found else np.zeros(0, dtype=np.intp)
    records = [record for *_, record in found]
    runs = _summed(cell, np.ones(len(records)), shape)
    return QuestionCosts(
        seconds=medians(took, places),
        tokens=_means(
            _summed(cell, np.array([float(record.tokens_in + record.tokens_out) for record in records]), shape), runs
        ),
        usd=_means(_summed(cell, np.array([record.cost_usd for record in records]), shape), runs),
    )


def _stage_names(traces: Sequence[Sequence[Trace]]) -> list[str]:
    return list(dict.fromkeys(record.stage for one in traces for trace in one for record in trace.stages))


def _summed(
    cell: npt.NDArray[np.intp], amounts: npt.NDArray[np.float64], shape: tuple[int, int, int]
) -> npt.NDArray[np.float64]:
    # A sum of floats depends on its order in the last digit, and no result may depend on the order of the rows.
    order = np.lexsort((amounts, cell))
    sums = np.zeros(shape)
    np.add.at(sums.ravel(), cell[order], amounts[order])
    return sums


def _means(sums: npt.NDArray[np.float64], runs: npt.NDArray[np.float64]) -> Means:
    """Return the means over the runs of each stage, without the stages that took nothing."""
    took = (sums > 0).any(axis=(0, 1))
    return Means(sums[:, :, took], runs[:, :, took])


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
    return found | dict(zip(others, _with_failures(tables, values[others], metric), strict=True))


def _with_failures(tables: RunTables, values: pd.DataFrame, metric: str) -> Sequence[Interval]:
    scale = tables.scales.get(metric, UNKNOWN)
    columns = [values[variant].dropna() for variant in values.columns]
    groups = [cluster_labels(column.index, tables.clusters) for column in columns] if tables.clusters else None
    ends = [(scale.low, scale.high)] * len(columns)
    return mean_intervals([numbers(column) for column in columns], clusters=groups, ranges=ends)


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
