"""The two tables of a comparison: what each variant scored, and how it differs from the baseline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rag_lab.report.numbers import interval, p_value, plain, signed, signed_interval
from rag_lab.report.tables import Table

if TYPE_CHECKING:
    import pandas as pd

    from rag_lab.report.compare import Comparison

SUMMARY_HEADER = ("variant", "metric", "mean", "95% interval", "scored", "failed", "not applicable")
DIFFERENCE_HEADER = ("variant", "metric", "n", "difference", "95% interval", "corrected p", "won/tied/lost", "verdict")


def tables(comparison: Comparison) -> list[Table]:
    """Return the tables of scores and of differences, and one of the variants without scores where there are any."""
    run = comparison.run
    metrics = (*comparison.quality_metrics, *comparison.cost_metrics)
    made = [
        scores_table(f"{run.name}: scores", comparison.summary, metrics, comparison.label),
        differences_table(
            f"{run.name}: against {comparison.label(run.baseline)}", comparison.differences, comparison.label
        ),
    ]
    if comparison.failed:
        rows = tuple((comparison.label(variant), reason) for variant, reason in comparison.failed.items())
        made.append(Table(f"{run.name}: without scores", ("variant", "reason"), rows, names=2))
    return made


def scores_table(title: str, summary: pd.DataFrame, metrics: Sequence[str], label: Callable[[str], str]) -> Table:
    """Return a row a (metric, variant): mean, interval, and how many of those asked were scored."""
    rows = [row for metric in metrics for row in _records(summary) if row["metric"] == metric]
    return Table(title, SUMMARY_HEADER, tuple(_scores(row, label) for row in rows), names=2)


def differences_table(title: str, differences: pd.DataFrame, label: Callable[[str], str]) -> Table:
    """Return a row a (variant, metric): difference, interval, corrected p, and what can be said."""
    rows = tuple(_difference(row, label) for row in _records(differences))
    return Table(title, DIFFERENCE_HEADER, rows, names=2)


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


def _scores(row: dict[str, Any], label: Callable[[str], str]) -> tuple[str, ...]:
    return (
        label(row["variant_id"]),
        str(row["metric"]),
        plain(row["mean"]),
        interval(row["low"], row["high"]),
        f"{row['scored']}/{row['asked']}",
        str(row["failed"]),
        str(row["not_applicable"]),
    )


def _difference(row: dict[str, Any], label: Callable[[str], str]) -> tuple[str, ...]:
    return (
        label(row["variant_id"]),
        str(row["metric"]),
        str(row["n"]),
        signed(row["difference"]),
        signed_interval(row["low"], row["high"]),
        p_value(row["p_corrected"]),
        f"{row['wins']}/{row['ties']}/{row['losses']}",
        str(row["verdict"]),
    )
