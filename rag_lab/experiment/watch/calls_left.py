"""What a run's bill says is left: calls of chat models, and how long they take."""

from __future__ import annotations

from rag_lab.errors import DamagedFile
from rag_lab.experiment.forecast.spending import spending_rows
from rag_lab.runs.run_folder import RunFolder


def calls_left(run: RunFolder) -> tuple[int, float | None]:
    """Return the calls that were estimated and not made yet, and their seconds, one after the other.

    Seconds go by the calls that were made, else by the bill; they are None where neither knows.
    """
    try:
        rows = spending_rows(run)
    except DamagedFile:
        return 0, None
    n_left, left_s = 0, 0.0
    is_known = True
    for row in rows:
        n = max(0, (row["calls_estimated"] or 0) - row["calls_spent"])
        pairs = (("calls_spent", "minutes_spent"), ("calls_estimated", "minutes_estimated"))
        paces = [row[minutes] / row[calls] for calls, minutes in pairs if row[calls] and row[minutes] is not None]
        n_left += n
        is_known = is_known and (not n or bool(paces))
        left_s += n * 60.0 * paces[0] if n and paces else 0.0
    return n_left, left_s if is_known else None
