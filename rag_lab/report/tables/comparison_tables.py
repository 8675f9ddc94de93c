"""The tables of a comparison: what each variant scored, how variants differ, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rag_lab._kit.numbers import interval, p_value, plain, signed, signed_interval
from rag_lab._kit.wording import short_verdict
from rag_lab.comparison.across import AcrossRuns
from rag_lab.comparison.comparison import Comparison
from rag_lab.report.tables.bill_table import bill_table
from rag_lab.report.tables.coverage_tables import coverage_table, order_table
from rag_lab.report.tables.effect_tables import effect_tables
from rag_lab.report.tables.hyde_tables import routing_tables, rule_table
from rag_lab.report.tables.noise_table import noise_table
from rag_lab.report.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd

SUMMARY_HEADER = ("variant", "metric", "mean", "95% interval", "scored", "failed", "not applicable")
DIFFERENCE_HEADER = (
    *("variant", "metric", "n", "difference", "95% interval", "p", "corrected p", "effect size", "won/tied/lost"),
    "verdict",
)
CORRECTIONS = {"holm": "Holm", "bh": "Benjamini-Hochberg", "none": "none"}


def tables(comparison: Comparison) -> list[Table]:
    """Return every table of the run: scores, differences, order, effects, routing, noise, complete cases, failures."""
    run = comparison.run
    metrics = (*comparison.quality_metrics, *comparison.cost_metrics)
    made = [
        scores_table(f"{run.name}: scores", comparison.summary, metrics, comparison.name, comparison.column),
        differences_table(differences_title(comparison), comparison.differences, comparison.name),
    ]
    if comparison.main_metric is not None:
        made += [order_table(comparison), *effect_tables(comparison.effects, comparison.main_metric)]
    for study in comparison.routing:
        made += [*routing_tables(study), rule_table(study)]
    made += [noise_table(comparison), coverage_table(comparison), bill_table(comparison)]
    if comparison.failed:
        rows = tuple((comparison.name(variant), reason) for variant, reason in comparison.failed.items())
        made.append(Table(f"{run.name}: without scores", ("variant", "reason"), rows, names=2))
    return made


def tables_across(found: AcrossRuns) -> list[Table]:
    """Return of two runs: scores, differences, the variants that both have, and what changed."""
    metrics = list(dict.fromkeys(found.summary["metric"]))
    first, second = found.names
    baseline = found.label(f"{first}/{found.first.run.baseline}")
    changes = tuple((change.what, change.first, change.second) for change in found.changes)
    return [
        scores_table("Scores on the shared questions", found.summary, metrics, found.label),
        differences_table(f"Against {baseline}", found.differences, found.label),
        differences_table(f"The same variant, {second} minus {first}", found.same, found.label),
        Table("What changed", ("what", first, second), changes, names=3),
    ]


def differences_title(comparison: Comparison) -> str:
    """Return what is compared with what, and the correction."""
    run = comparison.run
    against = "every pair" if comparison.pairs == "all" else f"against {comparison.label(run.baseline)}"
    return f"{run.name}: {against} (correction: {CORRECTIONS[comparison.correction]})"


def scores_table(
    title: str,
    summary: pd.DataFrame,
    metrics: Sequence[str],
    name: Callable[[str], str],
    column: Callable[[str], str] = str,
) -> Table:
    """Return a row a (metric, variant): mean, interval, and how many of those asked were scored.

    `name` and `column` say what variants and metrics are called.
    """
    rows = [row for metric in metrics for row in _records(summary) if row["metric"] == metric]
    return Table(title, SUMMARY_HEADER, tuple(_scores(row, name, column) for row in rows), names=2)


def differences_table(title: str, differences: pd.DataFrame, name: Callable[[str], str]) -> Table:
    """Return a row a comparison: difference, interval, p, and what can be said; all pairs name both variants."""
    is_paired = differences["against"].nunique() > 1
    rows = tuple(_difference(row, name, is_paired) for row in _records(differences))
    return Table(title, DIFFERENCE_HEADER, rows, names=2, words=1)


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


def _scores(row: dict[str, Any], name: Callable[[str], str], column: Callable[[str], str]) -> tuple[str, ...]:
    return (
        name(row["variant_id"]),
        column(str(row["metric"])),
        plain(row["mean"]),
        interval(row["low"], row["high"]),
        f"{row['scored']}/{row['asked']}",
        str(row["failed"]),
        str(row["not_applicable"]),
    )


def _difference(row: dict[str, Any], name: Callable[[str], str], is_paired: bool) -> tuple[str, ...]:
    return (
        f"{name(row['variant_id'])} against {name(row['against'])}" if is_paired else name(row["variant_id"]),
        str(row["metric"]),
        str(row["n"]),
        signed(row["difference"]),
        signed_interval(row["low"], row["high"]),
        p_value(row["p_value"]),
        p_value(row["p_corrected"]),
        signed(row["effect_size"]),
        f"{row['wins']}/{row['ties']}/{row['losses']}",
        short_verdict(str(row["verdict"])),
    )
