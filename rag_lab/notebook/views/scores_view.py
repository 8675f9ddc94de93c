"""Scores of one variant: the mean of each metric with its interval and counts; and the variant with its pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rag_lab._kit.wording import counted, interval, plain
from rag_lab.evaluation.registry import find_info
from rag_lab.experiment.run.variant_work import VariantWork
from rag_lab.notebook.views.pipeline_view import pipeline_view
from rag_lab.notebook.views.view import View
from rag_lab.records import Score
from rag_lab.report.shown_comparison import shown_frame
from rag_lab.report.table import Table
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
    view = _summary_view("", numbers)
    return shown_frame(numbers, view.to_html, view.to_text)


def _summary_view(title: str, numbers: pd.DataFrame) -> View:
    rows = tuple(
        (
            (_scale(str(metric)) or SHARE).named(str(metric)),
            plain(row["mean"]),
            interval(row["low"], row["high"]),
            f"{row['scored']}/{row['asked']}",
            *(str(row[name]) for name in ("failed", "not_applicable", "reason")),
        )
        for metric, row in numbers.iterrows()
    )
    return View(title, tables=(Table("", _HEADER, rows, words=1),))


def _numbers(metrics: Sequence[str], scores: Sequence[Score]) -> pd.DataFrame:
    scales = {metric: scale for metric in metrics if (scale := _scale(metric))}
    table = summary(to_frame({"variant": scores}), scales=scales).set_index("metric")
    return table.reindex(list(metrics))[_COLUMNS]


def _scale(metric: str) -> Scale | None:
    """Return range and direction of a metric that is built in."""
    info = find_info(metric)
    return info.scale if info else None


def scores_view(scores: Sequence[Score]) -> View:
    """Return a row for each metric; the title counts questions."""
    metrics = list(dict.fromkeys(score.metric for score in scores))
    questions = len({score.question_id for score in scores})
    title = f"{counted(len(scores), 'score')}: {counted(len(metrics), 'metric')}, {counted(questions, 'question')}"
    return _summary_view(title, _numbers(metrics, scores)) if scores else View("no scores")


def variant_view(variant: VariantWork) -> View:
    """Return a variant's pipeline, what is asked, and what the scores came to once there are some."""
    drawn = pipeline_view(variant.pipeline)
    asked = f"{len(variant.questions)} questions asked, {len(variant.answered)} answered"
    times = f", {variant.repeats} times" if variant.repeats > 1 else ""
    metrics = list(dict.fromkeys(score.metric for score in variant.scores))
    tables = _summary_view("", _numbers(metrics, variant.scores)).tables if variant.scores else ()
    title = f"Variant on {variant.pipeline.dataset.name}: {asked}{times}"
    folder, remembered = variant.pipeline.home, variant.pipeline.home / "stages.sqlite"
    home = f"{folder}, where nothing is remembered yet"
    if remembered.is_file():
        megabytes = remembered.stat().st_size / 1e6
        home = f"{folder}, whose {megabytes:,.1f} MB of remembered results are not computed again"
    scored_by = ", ".join(map(str, variant.metrics))
    facts = (*drawn.facts, ("Scored by", scored_by), ("Home", home))
    return replace(drawn, title=title, facts=facts, tables=tables)
