"""Metrics that are blind to a change: they read nothing that it touches."""

from __future__ import annotations

from rag_lab.comparison.run_tables import RunTables


def unmoved(tables: RunTables, variant: str, against: str, metric: str) -> str:
    """Return the fields that a metric reads where two variants have them all alike, else "".

    A metric that reads nothing that a change touches is blind to it; that all scores are equal is then no finding.
    """
    info = tables.run.metric(metric)
    ours, theirs = tables.traces.get(variant, []), tables.traces.get(against, [])
    if info is None or info.is_cost or not info.reads or len(ours) != len(theirs):
        return ""
    names = sorted(info.reads)
    is_same = all(getattr(a, name) == getattr(b, name) for a, b in zip(ours, theirs, strict=True) for name in names)
    return " and ".join({"ranked": "ranking"}.get(name, name) for name in names) if is_same else ""


def is_blind(tables: RunTables, variant: str, against: str, metric: str) -> bool:
    """Tell whether a metric scores two variants alike on every question because it reads nothing that differs."""
    row = tables.pair(variant, against, metric)
    is_tied = row is not None and 0 < int(row["n"]) == int(row["ties"])
    return is_tied and bool(unmoved(tables, variant, against, metric))
