"""Reasons of failures, counted: those that differ only in numbers and quoted text are one."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import pandas as pd

COMMONEST = 3  # reasons shown before the rest is counted
_PARTICULARS = re.compile(r"'[^']*'|\"[^\"]*\"|-?\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Reasons:
    """The commonest reasons with their counts, and how many had others."""

    shown: tuple[tuple[str, int], ...]
    more: int


def commonest(rows: pd.DataFrame) -> Reasons:
    """Return the commonest of the reasons in `rows` (columns `reason` and `count`), each by its first example."""
    counts: Counter[str] = Counter()
    examples: dict[str, list[str]] = {}
    for reason, count in zip(rows["reason"], rows["count"], strict=True):
        shape = _PARTICULARS.sub("", str(reason))
        counts[shape] += int(count)
        examples.setdefault(shape, []).append(str(reason) or "no reason was recorded")
    shown = tuple(
        (examples[shape][0] + (" and alike" if len(set(examples[shape])) > 1 else ""), count)
        for shape, count in counts.most_common(COMMONEST)
    )
    return Reasons(shown, counts.total() - sum(count for _, count in shown))
