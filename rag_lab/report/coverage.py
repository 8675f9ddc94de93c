"""Complete cases: on how many questions each mean stands, why the others are missing, and the order that follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from rag_lab.errors import ConfigError
from rag_lab.evaluation.registry import parse_name
from rag_lab.numbers import interval, number, plain
from rag_lab.report.reasons import commonest
from rag_lab.report.tables import Table
from rag_lab.statistics.ranking import RANKING_COLUMNS, ranking

if TYPE_CHECKING:
    from rag_lab.report.comparison import Comparison

_HEADER = ("metric", "variants", "asked", "scored", "failed", "not applicable", "reasons")
_OPEN_HEADER = (*_HEADER[:-1], "mean", "worst to best mean", "reasons")
_ORDER_HEADER = ("rank", "variant", "failures counted", "mean", "scored", "failed")


def order(comparison: Comparison) -> pd.DataFrame:
    """Return the variants in the order of the main metric, a failed question counted as its worst value."""
    metric = comparison.main_metric
    if metric is None or comparison.scores.empty:
        return pd.DataFrame(columns=list(RANKING_COLUMNS))
    return ranking(comparison.scores, metric, _lowest(comparison, metric))


def order_table(comparison: Comparison) -> Table:
    """Return the ranking as a table."""
    rows = [
        (
            str(row["rank"]),
            comparison.name(row["variant_id"]),
            plain(row["ranked_by"]),
            plain(row["mean"]),
            f"{row['scored']}/{row['asked']}",
            str(row["failed"]),
        )
        for row in comparison.ranking.to_dict("records")
    ]
    return Table(
        f"Order in {comparison.main_metric}, failures counted as its worst value", _ORDER_HEADER, tuple(rows), 2
    )


def coverage_table(comparison: Comparison) -> Table:
    """Return a row a metric and group of variants that have the same counts and reasons.

    Where something failed, each variant has a row of its own, with the means that its failures leave open.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for metric in (*comparison.quality_metrics, *comparison.cost_metrics):
        for plan in comparison.variants:
            cell = comparison.cell(plan.variant_id, metric)
            if cell is not None:
                groups.setdefault(_row(comparison, cell), []).append(comparison.codes[plan.variant_id])
    rows: list[tuple[str, ...]] = [(key[0], _who(comparison, codes), *key[1:]) for key, codes in groups.items()]
    header: tuple[str, ...] = _OPEN_HEADER
    if not any(row[header.index("mean")] for row in rows):
        rows, header = [(*row[: len(_HEADER) - 1], row[-1]) for row in rows], _HEADER
    return Table("Questions asked, scored and missing", header, tuple(rows), names=2, words=1)


def is_open(cell: dict[str, Any]) -> bool:
    """Tell whether failures leave open what the mean is."""
    worst, best = number(cell["worst"]), number(cell["best"])
    return bool(cell["failed"]) or (worst is not None and best is not None and best - worst > 1e-12)


def _row(comparison: Comparison, cell: dict[str, Any]) -> tuple[str, ...]:
    counts = tuple(str(cell[name]) for name in ("asked", "scored", "failed", "not_applicable"))
    gaps = comparison.gaps
    ours = gaps[(gaps["variant_id"] == cell["variant_id"]) & (gaps["metric"] == cell["metric"])]
    means = (plain(cell["mean"]), interval(cell["worst"], cell["best"])) if is_open(cell) else ("", "")
    return (cell["metric"], *counts, *means, _reasons(ours))


def _reasons(gaps: pd.DataFrame) -> str:
    told = []
    for status, rows in gaps.groupby("status", sort=True):
        found = commonest(rows)
        reasons = [f"{reason} ({count}×)" for reason, count in found.shown]
        reasons += [f"{found.more} for other reasons"] if found.more else []
        told.append(f"{str(status).replace('_', ' ')}: {'; '.join(reasons)}")
    return ". ".join(told)


def _who(comparison: Comparison, codes: Sequence[str]) -> str:
    scored = set(comparison.summary["variant_id"])
    return "all variants" if len(codes) == len(scored) > 1 else " ".join(codes)


def _lowest(comparison: Comparison, metric: str) -> float | None:
    """Return the worst value that the metric can take; None for one that the registry does not know."""
    try:
        lowest = parse_name(metric).info.low
    except ConfigError:
        return None
    values = comparison.scores.loc[comparison.scores["metric"] == metric, "value"].dropna().astype(float)
    return lowest if values.empty or float(values.min()) >= lowest else None
