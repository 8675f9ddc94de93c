"""What a variant came to: its means with their counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rag_lab.records import Score

if TYPE_CHECKING:
    import pandas as pd


def summary_table(metrics: Sequence[str], scores: Sequence[Score]) -> pd.DataFrame:
    """Return one row a metric: its mean over what was scored, beside how many were asked, failed or not applicable."""
    import pandas as pd

    return pd.DataFrame([_row(metric, scores) for metric in metrics]).set_index("metric")


def _row(metric: str, scores: Sequence[Score]) -> dict[str, Any]:
    mine = [score for score in scores if score.metric == metric]
    values = [score.value for score in mine if score.value is not None]
    counted = Counter(score.status for score in mine)
    return {
        "metric": metric,
        "mean": sum(values) / len(values) if values else None,
        "asked": len(mine),
        **{status: counted[status] for status in ("scored", "failed", "not_applicable")},
    }
