"""Variants that differ from the baseline in so few questions, or clusters of them, that no test can tell it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

from rag_lab.report.comparison import Comparison
from rag_lab.statistics.per_question import cluster_labels
from rag_lab.statistics.randomization import smallest_n
from rag_lab.statistics.verdict import ALPHA
from rag_lab.wording import counted


def too_few(comparison: Comparison, variant: str) -> str:
    """Say that the variant's test in the main metric cannot reach 0.05, whatever its interval; "" where it can.

    The test flips the signs of differences, and one that is zero has no sign.
    """
    units, needed = _units(comparison, variant), smallest_n(ALPHA)
    if units >= needed:
        return ""
    noun = "question" if comparison.clusters is None else "cluster"
    differ = f"{counted(units, noun)} differ{'s' if units == 1 else ''}"
    return (
        f"The interval of {comparison.codes[variant]} leaves out zero, but only {differ}, and with fewer than {needed} "
        f"no test can reach p < {ALPHA}: it is no finding."
    )


def _units(comparison: Comparison, variant: str) -> int:
    """Count the questions, or clusters, in which variant and baseline differ in the main metric."""
    table = comparison.questions.set_index("question_id")
    differences = (table[variant] - table[comparison.run.baseline]).astype(float).dropna()
    sums: defaultdict[Hashable, float] = defaultdict(float)
    for unit, difference in zip(cluster_labels(differences.index, comparison.clusters or {}), differences, strict=True):
        sums[unit] += difference
    return sum(total != 0 for total in sums.values())
