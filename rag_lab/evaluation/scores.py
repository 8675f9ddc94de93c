"""What `evaluate` returns: a list of scores that shows itself."""

from __future__ import annotations

from rag_lab.records import Score
from rag_lab.shows_itself import shows_itself


@shows_itself("rag_lab.notebook.views.scores_view")
class Scores(list[Score]):
    """A list; where it is shown, a row a metric with mean, interval and counts."""
