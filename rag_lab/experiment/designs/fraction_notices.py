"""What is to be known of a fraction before it runs: what it confounds, and what a rule between factors does to it."""

from __future__ import annotations

from collections.abc import Sequence

from rag_lab.comparison.designs.fraction_sentences import fraction_told
from rag_lab.experiment.designs.choices import Changes, Factors


def fraction_notices(factors: Factors, drawn: Sequence[Changes], choices: Sequence[Changes]) -> list[str]:
    """Return the notices of a fraction as it was drawn, and as rules between factors have left it."""
    names = [key for key, values in factors.items() if len(values) > 1]
    if not names:
        return []
    told = [fraction_told(names, [[repr(run[name]) for name in names] for run in drawn])]
    moved = [choice for choice in choices if choice not in drawn]
    if moved:
        told.append(
            f"{len(moved)} of its {len(drawn)} runs are moved out of it by only_if, so that it is not balanced and no "
            "main effects are told; take the design grid or random, or leave out the factors that have rules."
        )
    return told
