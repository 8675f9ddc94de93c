"""Where evidence is lost, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.evidence.state_names import state_names
from rag_lab.report.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd


def evidence_tables(comparison: Comparison) -> list[Table]:
    """Return the counts by variant, what moved against the baseline, and the counts by class."""
    return [evidence_table(comparison), moved_table(comparison), evidence_by_class_table(comparison)]


def evidence_table(comparison: Comparison) -> Table:
    """Return a row a variant: how many labelled pieces of evidence ended in each state."""
    rows = tuple((comparison.name(row["variant_id"]), *_counts(comparison, row)) for row in _records(comparison, ""))
    return Table("Where evidence is lost", ("variant", *_header(comparison)), rows)


def evidence_by_class_table(comparison: Comparison) -> Table:
    """Return the same for each query class."""
    rows = tuple(
        (row["query_class"], comparison.name(row["variant_id"]), *_counts(comparison, row))
        for row in _records(comparison, "query_class")
    )
    return Table("Where evidence is lost, by query class", ("class", "variant", *_header(comparison)), rows, names=2)


def moved_table(comparison: Comparison) -> Table:
    """Return a row a variant and a move: where pieces ended under the baseline, and where under the variant."""
    found = comparison.evidence
    names = state_names(found)
    rows = tuple(
        (comparison.name(row["variant_id"]), names[row["before"]].name, names[row["after"]].name, f"{row['items']:,}")
        for row in found.moved.to_dict("records")
    )
    header = ("variant", "under the baseline", "under the variant", "pieces")
    return Table("Evidence that ended elsewhere than under the baseline", header, rows, names=3)


def _header(comparison: Comparison) -> tuple[str, ...]:
    return ("pieces", *(name.name for name in state_names(comparison.evidence).values()))


def _records(comparison: Comparison, group: str) -> list[dict[Any, Any]]:
    table: pd.DataFrame = comparison.evidence.by_class if group else comparison.evidence.by_variant
    return table.to_dict("records")


def _counts(comparison: Comparison, row: dict[Any, Any]) -> tuple[str, ...]:
    return tuple(f"{row[name]:,}" for name in ("items", *comparison.evidence.states))
