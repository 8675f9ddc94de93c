"""The knee of a ranked list: the place of its largest drop in score, below which little is to be expected."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise


def before_largest_drop(scores: Sequence[float]) -> int:
    """Return how many of `scores`, best first, stand before the largest drop from one to the next.

    All of them where no score is below the one before; of equal drops, the first. At least one where there is any.
    """
    drops = [first - second for first, second in pairwise(scores)]
    largest = max(drops, default=0.0)
    return drops.index(largest) + 1 if largest > 0 else len(scores)
