"""Scores of one variant: a row a metric with its mean, the interval, and how many questions that stands on."""

from __future__ import annotations

from collections.abc import Sequence

from rag_lab._kit.wording import counted
from rag_lab.notebook.summary import summary_view
from rag_lab.notebook.views.view import View
from rag_lab.records import Score


def to_html(scores: Sequence[Score]) -> str:
    """Return the table; everything from outside is escaped."""
    return _view(scores).to_html()


def to_text(scores: Sequence[Score]) -> str:
    """Return the same as text."""
    return _view(scores).to_text()


def _view(scores: Sequence[Score]) -> View:
    metrics = list(dict.fromkeys(score.metric for score in scores))
    questions = len({score.question_id for score in scores})
    title = f"{counted(len(scores), 'score')}: {counted(len(metrics), 'metric')}, {counted(questions, 'question')}"
    return summary_view(title, metrics, scores) if scores else View("no scores")
