"""By how much a variant raises the main metric, in words."""

from __future__ import annotations

from rag_lab._kit.numbers import plain, signed
from rag_lab.comparison.advice.choices import Choices, Row


def gained(choices: Choices, variant: str) -> str:
    """Say what a variant does to the main metric beside the reference: `it raises ndcg@5 by 0.1 [0.05 to 0.15]`."""
    row = choices.rows[variant]
    verb = "raises" if float(row["difference"]) > 0 else "lowers"
    metric = choices.comparison.directed(choices.metric)
    return f"it {verb} {metric} by {plain(abs(row['difference']))} [{_interval(row)}]"


def _interval(row: Row) -> str:
    """Write the interval of the size of a difference."""
    ends = sorted(abs(float(row[end])) for end in ("low", "high"))
    if float(row["low"]) < 0 < float(row["high"]):
        return f"{signed(row['low'])} to {signed(row['high'])}"
    return f"{plain(ends[0])} to {plain(ends[1])}"
