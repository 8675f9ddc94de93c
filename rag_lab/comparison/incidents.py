"""What failed or fell back, and why: reasons that differ only in numbers and quoted text are counted as one."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pandas as pd

from rag_lab.comparison.run_tables import RunTables

COMMONEST = 3  # reasons shown before the rest is counted
_PARTICULARS = re.compile(r"'[^']*'|\"[^\"]*\"|-?\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Reasons:
    """The commonest reasons with their counts, and how many had others."""

    shown: tuple[tuple[str, int], ...]
    more: int


def commonest(rows: pd.DataFrame) -> Reasons:
    """Return the commonest of the reasons in `rows` (columns `reason` and `count`), each by its first example."""
    counts: Counter[str] = Counter()
    examples: dict[str, list[str]] = {}
    for reason, count in zip(rows["reason"], rows["count"], strict=True):
        shape = _PARTICULARS.sub("", str(reason))
        counts[shape] += int(count)
        examples.setdefault(shape, []).append(str(reason) or "no reason was recorded")
    shown = tuple(
        (examples[shape][0] + (" and alike" if len(set(examples[shape])) > 1 else ""), count)
        for shape, count in counts.most_common(COMMONEST)
    )
    return Reasons(shown, counts.total() - sum(count for _, count in shown))


def stage_incidents(tables: RunTables) -> list[dict[str, Any]]:
    """Return fallbacks and failures by stage and status with their commonest reasons, and how often in each variant."""
    groups = tables.stage_problems.groupby(["stage", "status"], sort=False)
    return [
        {"stage": stage, "status": status, "where": _where(tables, rows), "found": commonest(rows)}
        for (stage, status), rows in groups
    ]


def score_incidents(tables: RunTables) -> list[dict[str, Any]]:
    """Return failed scores by metric with their commonest reasons, and how often in each variant."""
    groups = tables.gaps[tables.gaps["status"] == "failed"].groupby("metric", sort=False)
    return [{"metric": metric, "where": _where(tables, rows), "found": commonest(rows)} for metric, rows in groups]


def _where(tables: RunTables, rows: Any) -> list[tuple[str, int, int | None]]:
    """Return (letter, count, runs) for each variant; runs are None where the rows do not know them."""
    counts = rows.groupby("variant_id")["count"].sum()
    runs = rows.groupby("variant_id")["runs"].first() if "runs" in rows else {}
    return [
        (letter, int(counts[variant]), int(runs[variant]) if variant in runs else None)
        for variant, letter in tables.codes.items()
        if variant in counts.index
    ]
