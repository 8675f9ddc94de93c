"""Complete cases: on how many questions each mean stands, why the others are missing, and the order that follows."""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose
from typing import TYPE_CHECKING, Any

from rag_lab._kit.numbers import DASH, number, plain
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.incidents import commonest
from rag_lab.report.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd

_HEADER = ("metric", "variants", "asked", "scored", "failed", "not applicable", "reasons")
_OPEN_HEADER = (*_HEADER[:-1], "mean", "worst to best mean", "reasons")
_ORDER_HEADER = ("rank", "variant", "failures counted", "mean", "scored", "failed")


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
    metric = comparison.directed(comparison.main_metric or "")
    return Table(f"Order in {metric}, failures counted as its worst value", _ORDER_HEADER, tuple(rows), 2)


def coverage_table(comparison: Comparison) -> Table:
    """Return a row a metric and group of variants that have the same counts and reasons.

    Where something failed, each variant has a row of its own, with the means that its failures leave open.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    gaps = dict(iter(comparison.gaps.groupby(["variant_id", "metric"], sort=False)))
    for metric in (*comparison.quality_metrics, *comparison.cost_metrics):
        for plan in comparison.variants:
            cell = comparison.cell(plan.variant_id, metric)
            if cell is not None:
                groups.setdefault(_row(cell, gaps.get((plan.variant_id, metric), comparison.gaps[:0])), []).append(
                    comparison.codes[plan.variant_id]
                )
    rows: list[tuple[str, ...]] = [(key[0], _who(comparison, codes), *key[1:]) for key, codes in groups.items()]
    header: tuple[str, ...] = _OPEN_HEADER
    if not any(row[header.index("mean")] for row in rows):
        rows, header = [(*row[: len(_HEADER) - 1], row[-1]) for row in rows], _HEADER
    return Table("Questions asked, scored and missing", header, tuple(rows), names=2, words=1)


def is_open(cell: dict[str, Any]) -> bool:
    """Tell whether failures leave open what the mean is."""
    mean, ends = number(cell["mean"]), (number(cell["worst"]), number(cell["best"]))
    return bool(cell["failed"]) or any(not _is_same(mean, end) for end in ends if end is not None)


def _row(cell: dict[str, Any], gaps: pd.DataFrame) -> tuple[str, ...]:
    counts = tuple(str(cell[name]) for name in ("asked", "scored", "failed", "not_applicable"))
    means = (plain(cell["mean"]), _ends(cell)) if is_open(cell) else ("", "")
    return (cell["metric"], *counts, *means, _reasons(gaps))


def _is_same(mean: float | None, end: float) -> bool:
    return mean is not None and isclose(mean, end, rel_tol=1e-9, abs_tol=1e-12)


def _ends(cell: dict[str, Any]) -> str:
    """Write the worst and the best mean; a dash stands where the metric has no bound."""
    worst, best = plain(cell["worst"]), plain(cell["best"])
    return DASH if worst == best == DASH else f"{worst} to {best}"


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
