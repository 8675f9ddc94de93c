"""Time left as a range: by what variants took in this start; before one has ended, by the estimate of calls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rag_lab.errors import DamagedFile
from rag_lab.experiment.forecast.spending import spending_rows
from rag_lab.runs.run_folder import RunFolder

_FACTOR = 2.0  # by which minutes may differ from a bill, or from those of one variant


@dataclass(frozen=True, slots=True)
class Left:
    """Seconds left: at least, and at most; None where the most is not known."""

    least_s: float
    most_s: float | None

    def text(self) -> str:
        """Write it in minutes."""
        if self.most_s is None:
            return f"≥ {_minutes(self.least_s)}"
        least, most = _minutes(self.least_s), _minutes(self.most_s)
        return least if least == most else f"{least} to {most}"


def stage_left_s(done: int, total: int | None, known: int, elapsed_s: float) -> float | None:
    """Return the seconds left in a stage by its pace; None before anything of it was computed.

    Args:
        done: of `total`.
        total: None where nothing is counted.
        known: of `done`, what was there when the stage began.
        elapsed_s: since then.
    """
    new = done - known
    return None if total is None or new <= 0 else (total - done) * elapsed_s / new


def variant_left(elapsed_s: float, stage_s: float | None, ended_s: Sequence[float]) -> Left | None:
    """Return the time left of a variant that runs since `elapsed_s`; None where nothing is known.

    Args:
        elapsed_s: since it began.
        stage_s: left in its stage, as `stage_left_s`.
        ended_s: what variants took that have ended in this start. The quickest and the slowest are the ends of the
            range, as they may share work; of a single one half and double. One that takes longer than that has no
            upper end.
    """
    ended_s = _range(ended_s)
    least_s = stage_s or 0.0
    if not ended_s:
        return None if stage_s is None else Left(least_s, None)
    low_s, high_s = max(least_s, min(ended_s) - elapsed_s), max(ended_s) - elapsed_s
    return Left(max(low_s, 0.0), None if high_s < low_s or high_s < 0 else high_s)


def sweep_left(
    running: Sequence[Left | None], n_waiting: int, jobs: int, ended_s: Sequence[float], bill_s: float | None
) -> Left | None:
    """Return the time left of a sweep; None where nothing is known.

    Args:
        running: what is left of each variant that runs.
        n_waiting: variants that have not begun.
        jobs: variants that run at a time.
        ended_s: as in `variant_left`.
        bill_s: seconds of the calls that the bill says are left, one after the other; None where it does not know.
    """
    ended_s = _range(ended_s)
    lasts = [one.least_s for one in running if one is not None]
    longest_s = max(lasts, default=0.0)
    if not ended_s:
        if bill_s is None:
            return Left(longest_s, None) if longest_s else None
        side_by_side = max(1, min(jobs, len(running) + n_waiting))
        return Left(max(longest_s, bill_s / side_by_side / _FACTOR), max(longest_s, bill_s * _FACTOR))
    least_s = max(longest_s, (math.fsum(lasts) + n_waiting * min(ended_s)) / jobs)
    if any(one is None or one.most_s is None for one in running):
        return Left(least_s, None)
    mosts = [one.most_s for one in running if one is not None and one.most_s is not None]
    work_s = math.fsum(mosts) + n_waiting * max(ended_s)
    end_s = max(ended_s) if n_waiting else max(mosts, default=0.0)  # the one that ends last may begin last
    return Left(least_s, max(least_s, min(work_s, work_s / jobs + end_s)))


def _range(ended_s: Sequence[float]) -> Sequence[float]:
    return ended_s if len(ended_s) != 1 else (ended_s[0] / _FACTOR, ended_s[0] * _FACTOR)


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds < 600 else f"{seconds / 60:.0f} min"


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
