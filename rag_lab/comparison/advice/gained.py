"""By how much a variant that is reliably better changes the main metric, and at what price, in words."""

from __future__ import annotations

from rag_lab._kit.numbers import plain
from rag_lab.comparison.advice.choices import Choices


def gained(choices: Choices, variant: str) -> str:
    """Say so: `it raises ndcg@5 by 0.1 [0.05 to 0.15] and costs 1.9 s a question`."""
    row = choices.rows[variant]
    verb = "raises" if float(row["difference"]) > 0 else "lowers"
    ends = sorted(abs(float(row[end])) for end in ("low", "high"))
    size = f"{plain(abs(row['difference']))} [{plain(ends[0])} to {plain(ends[1])}]"
    metric = choices.comparison.directed(choices.metric)
    return f"it {verb} {metric} by {size} and {choices.surplus(variant).sentence}"
