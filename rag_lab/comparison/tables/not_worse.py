"""What a margin allows one to say: of each pair that was declared, or each main effect, that the cheaper may be kept.

One question is asked of a pair: whether the side that one would like to keep is not worse than the other by more than
the margin. It is the variant, or, where the variant costs more and saves nothing, what it is compared with: then the
addition is what may be left out. Which side it is depends on what a question takes and never on scores, so that one
test a pair is made and no more are corrected for. Metrics that are blind to a change say nothing of it here.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pandas as pd

from rag_lab.comparison.tables.bounds import bound_arms
from rag_lab.comparison.tables.comparable import unchanged_fields, withheld
from rag_lab.comparison.tables.effects import EffectsFound
from rag_lab.comparison.tables.prices import Price, average
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.statistics.non_inferiority import margin_tests

MOST_PLANNED = 3
Key = tuple[str, str, str]  # metric, variant and against; or metric, factor and level


@dataclass(frozen=True, slots=True)
class NotWorse:
    """Whether the side to keep is not worse by more than the margin; `reason` says why that could not be tested.

    is_addition: the variant costs more, so that what it is compared with is the side to keep.
    weights: of the variants, positive for the side to keep.
    n, n_failed: questions that it stands on, and of these those on which one of the two failed.
    p_value, p_corrected: one-sided; corrected over the pairs, or main effects, of the metric.
    price: how much more the side to keep takes.
    """

    is_addition: bool
    weights: tuple[tuple[str, float], ...]
    margin: float
    n: int
    n_failed: int
    p_value: float | None
    p_corrected: float | None
    is_found: bool
    reason: str
    price: Price


def not_worse_found(tables: RunTables, planned: EffectsFound, prices: Mapping[str, Price]) -> dict[Key, NotWorse]:
    """Return what the margins of a run allow one to say; empty where it has none."""
    found: dict[Key, NotWorse] = {}
    for metric, margin in tables.run.margins.items():
        sides = {key: _kept(weights, prices) for key, weights in _contrasts(tables, planned, metric).items()}
        weights = {key: one for key, (one, _, _) in sides.items()}
        if metric not in tables.quality_metrics or not weights:
            continue
        table = margin_tests.not_worse(
            tables.quality_scores, weights, {metric: margin}, clusters=tables.clusters, scales=tables.scales
        )
        for row in table.to_dict("records"):
            kept, is_addition, price = sides[row["contrast"]]
            found[(metric, *row["contrast"])] = NotWorse(
                is_addition=is_addition,
                weights=tuple(kept.items()),
                margin=float(row["margin"]),
                n=int(row["n"]),
                n_failed=int(row["n_failed"]),
                p_value=row["p_value"],
                p_corrected=row["p_corrected"],
                is_found=bool(row["is_not_worse"]),
                reason=str(row["reason"]),
                price=price,
            )
    return found


def questions_for_margin(
    tables: RunTables, found: Mapping[Key, NotWorse], findings: Collection[Key]
) -> dict[Key, int | None]:
    """Return how many questions, or clusters, would show what the main metric's margin does not show yet.

    Told of the answers that are closest, at most MOST_PLANNED, as each takes a simulation, and not of `findings`:
    where a difference is known, it is idle to ask what would be shown if there were none.
    """
    ours = {key: one for key, one in found.items() if key[0] == tables.main_metric and one.p_value is not None}
    missing = [key for key, one in ours.items() if not one.is_found and key not in findings]
    open_ones = sorted(missing, key=lambda key: ours[key].p_value or 0.0)
    weights = {key: dict(ours[key].weights) for key in open_ones[:MOST_PLANNED]}
    if not weights or tables.main_metric is None:
        return {}
    return margin_tests.questions_needed(
        tables.quality_scores,
        weights,
        tables.main_metric,
        tables.run.margins[tables.main_metric],
        len(ours),
        clusters=tables.clusters,
        scales=tables.scales,
    )


def best_found(tables: RunTables) -> pd.DataFrame:
    """Return for each variant whether it is not worse than the best by more than the margin of the main metric.

    Candidates and rivals are the variants that the run is about: where it names pairs, those of the pairs. Variants
    that the metric is blind to, or sees to another depth than the first of them, are neither, and no bound is one.
    """
    metric = tables.main_metric
    if metric is None or metric not in tables.run.margins:
        return pd.DataFrame(columns=list(margin_tests.BEST_COLUMNS))
    asked = {variant for pair in tables.run.pairs for variant in pair} - set(bound_arms(tables))
    ids = [plan.variant_id for plan in tables.variants if plan.variant_id in asked]
    scored = [variant for variant in ids if (tables.cell(variant, metric) or {}).get("scored")]
    able = [one for one in scored if one == scored[0] or not _is_withheld(tables, one, scored[0], metric)]
    margin = {metric: tables.run.margins[metric]}
    return margin_tests.not_worse_than_best(
        tables.quality_scores, able, margin, clusters=tables.clusters, scales=tables.scales
    )


def _contrasts(tables: RunTables, planned: EffectsFound, metric: str) -> dict[tuple[str, str], dict[str, float]]:
    """Return (variant, against) or (factor, level) to the weights of what the metric compares."""
    if planned.is_grid:
        mains = [one for one in planned.planned if one.contrast.kind == "main" and one.metric == metric]
        return {(one.contrast.factor, one.contrast.level): one.contrast.weights for one in mains}
    scored = set(tables.scores.loc[tables.scores["metric"] == metric, "variant_id"])
    pairs = [pair for pair in tables.run.pairs if scored.issuperset(pair)]
    return {pair: {pair[0]: 1.0, pair[1]: -1.0} for pair in pairs if not _is_withheld(tables, *pair, metric)}


def _is_withheld(tables: RunTables, variant: str, against: str, metric: str) -> bool:
    """Tell whether two variants are not compared, or the metric reads nothing that differs between them."""
    if withheld(tables, metric, (variant, against)):
        return True
    row = tables.pair(variant, against, metric)
    is_tied = row is not None and 0 < int(row["n"]) == int(row["ties"])
    return is_tied and bool(unchanged_fields(tables, variant, against, metric))


def _kept(weights: Mapping[str, float], prices: Mapping[str, Price]) -> tuple[dict[str, float], bool, Price]:
    """Return the weights of the side to keep against the other, whether that leaves out an addition, and its price."""
    sides = ([one for one, weight in weights.items() if weight * sign > 0] for sign in (1, -1))
    ours, theirs = (average(prices, side) for side in sides)
    if theirs.minus(ours).is_saving:
        return {one: -weight for one, weight in weights.items()}, True, theirs.minus(ours)
    return dict(weights), False, ours.minus(theirs)
