"""Metrics that stand on few of the questions that the main metric stands on: they are shown apart, with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_lab.comparison.comparison import Comparison

SHARE = 0.5  # of the questions that the main metric has under the variant where it has most


def set_apart(comparison: Comparison) -> dict[str, str]:
    """Return the quality metrics with scores on less than half as many questions as the main metric, and why.

    The reason reads on after the name of the metric: `5 of 117 questions: no answer was asked for (112)`.
    """
    cells: dict[str, dict[Any, Any]] = {}
    for row in comparison.summary.to_dict("records"):
        if row["metric"] not in cells or row["scored"] > cells[row["metric"]]["scored"]:
            cells[row["metric"]] = row
    most = cells.get(comparison.main_metric or "", {"scored": 0})["scored"]
    found = {metric: cells[metric] for metric in comparison.quality_metrics if metric in cells}
    return {metric: _why(comparison, cell) for metric, cell in found.items() if cell["scored"] < SHARE * most}


def set_apart_sentences(apart: Mapping[str, str]) -> list[str]:
    """Return a sentence for each reason, with the metrics that share it."""
    by_reason: dict[str, list[str]] = {}
    for metric, why in apart.items():
        by_reason.setdefault(why, []).append(metric)
    return [f"{', '.join(metrics)}: {why}." for why, metrics in by_reason.items()]


def _why(comparison: Comparison, cell: Mapping[Any, Any]) -> str:
    gaps, run = comparison.gaps, comparison.run
    ours = gaps[(gaps["variant_id"] == cell["variant_id"]) & (gaps["metric"] == cell["metric"])]
    reasons = [f"{reason} ({count})" for reason, count in zip(ours["reason"], ours["count"], strict=True)]
    if 0 < len(run.answered) < len(run.questions):
        reasons.append(f"{len(run.answered)} are answered, as `limits.answers` says")
    return f"{cell['scored']} of {cell['asked']} questions{': ' if reasons else ''}{'; '.join(reasons)}"
