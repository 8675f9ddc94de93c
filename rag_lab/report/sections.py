"""The tables of the report page, as values that the template writes down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_lab.experiment.plain_text import plain_text
from rag_lab.report.comparison import Comparison
from rag_lab.report.reasons import commonest

NOTICED_S = 0.001
_ELSEWHERE = ("variants", "problems", "spent")  # entries of the manifest that have sections of their own


def changed_keys(comparison: Comparison) -> list[str]:
    """Return the dotted keys in which any variant differs from the baseline, in order of first appearance."""
    return list(dict.fromkeys(key for plan in comparison.variants for key in plan.changes))


def baseline_values(comparison: Comparison) -> dict[str, Any]:
    """Return the baseline's value of each changed key, from its config.yaml; empty where that was not written."""
    config = comparison.run.config(comparison.run.baseline)
    return config.flat() if config is not None else {}


def stage_names(comparison: Comparison) -> tuple[list[str], list[str]]:
    """Return the stages in the order in which they ran, and apart from them those that took no time anywhere."""
    table = comparison.stages
    did = (table["median_s"] >= NOTICED_S) | (table[["tokens_in", "tokens_out", "fallbacks", "failures"]] > 0).any(
        axis=1
    )
    shown = set(table.loc[did, "stage"])
    names = list(dict.fromkeys(table["stage"]))
    return [name for name in names if name in shown], [name for name in names if name not in shown]


def stage_cells(comparison: Comparison) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the rows of `stages` by (variant_id, stage)."""
    rows = comparison.stages.to_dict("records")
    return {(row["variant_id"], row["stage"]): {str(key): value for key, value in row.items()} for row in rows}


def stage_incidents(comparison: Comparison) -> list[dict[str, Any]]:
    """Return fallbacks and failures by stage and status with their commonest reasons, and how often in each variant."""
    groups = comparison.stage_problems.groupby(["stage", "status"], sort=False)
    return [
        {"stage": stage, "status": status, "where": _where(comparison, rows), "found": commonest(rows)}
        for (stage, status), rows in groups
    ]


def score_incidents(comparison: Comparison) -> list[dict[str, Any]]:
    """Return failed scores by metric with their commonest reasons, and how often in each variant."""
    groups = comparison.gaps[comparison.gaps["status"] == "failed"].groupby("metric", sort=False)
    return [{"metric": metric, "where": _where(comparison, rows), "found": commonest(rows)} for metric, rows in groups]


def provenance(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what the manifest says as (name, text) pairs; what has a section of its own is left out."""
    facts = []
    for key, value in manifest.items():
        if key not in _ELSEWHERE:
            facts += _facts(key, value)
    return facts


def _where(comparison: Comparison, rows: Any) -> list[tuple[str, int, int | None]]:
    """Return (letter, count, runs) for each variant; runs are None where the rows do not know them."""
    counts = rows.groupby("variant_id")["count"].sum()
    runs = rows.groupby("variant_id")["runs"].first() if "runs" in rows else {}
    return [
        (letter, int(counts[variant]), int(runs[variant]) if variant in runs else None)
        for variant, letter in comparison.codes.items()
        if variant in counts.index
    ]


def _facts(name: str, value: Any) -> list[tuple[str, str]]:
    """Flatten one entry: a mapping of plain values is one line, deeper ones are a line each."""
    if isinstance(value, Mapping) and any(isinstance(inner, Mapping | list) for inner in value.values()):
        return [fact for key, inner in value.items() for fact in _facts(f"{name}: {key}", inner)]
    return [(name, plain_text(value, "not known"))]
