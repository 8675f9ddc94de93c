"""How good each variant was on each question in the main metric, a failure counted as its worst value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from rag_lab.comparison.run_tables import RunTables
from rag_lab.statistics.intervals import Interval, mean_intervals
from rag_lab.statistics.pareto import Means
from rag_lab.statistics.per_question import cluster_labels, numbers, per_question, with_failures_at
from rag_lab.statistics.scales import UNKNOWN


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
