"""The share of the reachable gain, from a closed book to the labelled evidence, that each variant reaches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_lab.comparison.bounds.bound_arms import BOUNDS, CEILING, FLOOR, bound_arms, bound_of
from rag_lab.comparison.run_tables import RunTables
from rag_lab.statistics.per_question import cluster_labels, exact_mean, per_question
from rag_lab.statistics.scales import UNKNOWN
from rag_lab.statistics.shares import GainShare, gain_share

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Reach:
    """What one variant reaches in one metric, on the questions that it and its two bounds have scores on.

    floor, ceiling: the variants with its reader that read nothing, and the labelled evidence; None where there is none.
    means: of the floor, the variant and the ceiling; None without questions.
    """

    variant_id: str
    metric: str
    floor: str | None
    ceiling: str | None
    means: tuple[float, float, float] | None
    found: GainShare


def reachable_gain(tables: RunTables) -> tuple[Reach, ...]:
    """Return a row a metric that reads answers and variant, in the order of the plan; empty where nothing is a bound.

    The files of the labelled evidence are an arm beside the others: what of the gain is left where a reader has to find
    the place in them.
    """
    arms = bound_arms(tables)
    if not {FLOOR, CEILING} & set(arms.values()):
        return ()
    return tuple(_rows(tables, {one for one, kind in arms.items() if kind in (FLOOR, CEILING)}))


def answer_metrics(tables: RunTables) -> list[str]:
    """Return the quality metrics that read answers, in the order of the plan: in others a bound is blind."""
    infos = {metric: tables.run.metric(metric) for metric in tables.quality_metrics}
    return [metric for metric, info in infos.items() if info is not None and info.reads_answers]


def _rows(tables: RunTables, bounds: set[str]) -> Iterator[Reach]:
    metrics = answer_metrics(tables)
    scores = per_question(tables.scores, metrics)
    for metric in metrics:
        cells = scores[scores["metric"] == metric]
        wide = cells.pivot(index="question_id", columns="variant_id", values="mean").sort_index()
        for plan in tables.variants:
            if plan.variant_id in wide and plan.variant_id not in bounds:
                yield _reach(tables, metric, plan.variant_id, wide)


def _reach(tables: RunTables, metric: str, variant: str, wide: pd.DataFrame) -> Reach:
    floor, ceiling = (bound_of(tables, variant, kind) for kind in (FLOOR, CEILING))
    if floor is None or ceiling is None:
        missing = [BOUNDS[kind] for kind, one in ((FLOOR, floor), (CEILING, ceiling)) if one is None]
        reason = f"no variant with its reader reads {' or '.join(missing)}"
        return Reach(variant, metric, floor, ceiling, None, GainShare(None, None, None, 0, reason))
    if without := [one for one in (floor, ceiling) if one not in wide or wide[one].isna().all()]:
        reason = f"{tables.called(without[0])} has no score: {_why_not(tables, without[0], metric)}"
        return Reach(variant, metric, floor, ceiling, None, GainShare(None, None, None, 0, reason))
    both = wide[[variant, floor, ceiling]].dropna()
    values, floors, ceilings = (both.iloc[:, place] for place in range(3))
    clusters = cluster_labels(both.index, tables.clusters) if tables.clusters is not None else None
    sign = tables.scales.get(metric, UNKNOWN).sign
    found = gain_share([*values], [*floors], [*ceilings], sign=sign, clusters=clusters)
    means = (exact_mean(floors), exact_mean(values), exact_mean(ceilings)) if len(both) else None
    return Reach(variant, metric, floor, ceiling, means, found)


def _why_not(tables: RunTables, variant: str, metric: str) -> str:
    """Return the commonest reason for which a variant has no scores."""
    rows = tables.gaps[(tables.gaps["variant_id"] == variant) & (tables.gaps["metric"] == metric)]
    return str(next(iter(rows["reason"]), "none was computed"))
