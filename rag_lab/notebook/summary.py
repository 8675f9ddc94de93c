"""What scores came to: the mean of each metric with its interval and its counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_lab._kit.numbers import interval, plain
from rag_lab.evaluation.registry import find_info
from rag_lab.notebook.views.view import View
from rag_lab.records import Score
from rag_lab.report.shown_comparison import shown_frame
from rag_lab.report.tables.table import Table
from rag_lab.runs.score_file import to_frame
from rag_lab.statistics.scales import SHARE, Scale
from rag_lab.statistics.summaries import summary

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ["mean", "low", "high", "asked", "scored", "failed", "not_applicable", "reason"]
_HEADER = ("metric", "mean", "95% interval", "scored", "failed", "not applicable", "reason")


def summary_table(metrics: Sequence[str], scores: Sequence[Score]) -> pd.DataFrame:
    """Return one row a metric: its mean over the questions scored, the ends of its 95% interval, counts, and a reason.

    Repeats are averaged within their question. The numbers are there to compute with; the frame shows itself rounded.
    """
    numbers = _numbers(metrics, scores)
    view = _view("", numbers)
    return shown_frame(numbers, view.to_html, view.to_text)


def summary_view(title: str, metrics: Sequence[str], scores: Sequence[Score]) -> View:
    """Return what `summary_table` holds as a page."""
    return _view(title, _numbers(metrics, scores))


def _view(title: str, numbers: pd.DataFrame) -> View:
    rows = [_row(str(metric), row) for metric, row in numbers.iterrows()]
    return View(title, tables=(Table("", _HEADER, tuple(rows), words=1),))


def _numbers(metrics: Sequence[str], scores: Sequence[Score]) -> pd.DataFrame:
    scales = {metric: scale for metric in metrics if (scale := _scale(metric))}
    table = summary(to_frame("variant", scores), scales=scales).set_index("metric")
    return table.reindex(list(metrics))[_COLUMNS]


def _row(metric: str, row: pd.Series) -> tuple[str, ...]:
    return (
        (_scale(metric) or SHARE).named(metric),
        plain(row["mean"]),
        interval(row["low"], row["high"]),
        f"{row['scored']}/{row['asked']}",
        str(row["failed"]),
        str(row["not_applicable"]),
        str(row["reason"]),
    )


def _scale(metric: str) -> Scale | None:
    """Return range and direction of a metric that is built in."""
    info = find_info(metric)
    return info.scale if info else None
