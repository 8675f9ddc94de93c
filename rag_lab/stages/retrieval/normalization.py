"""Score normalization: what makes the scores of different searches comparable before they are added.

`min_max` and `z_score` keep the gaps between scores and so depend on their scale only up to a linear change; `rank` and
`reciprocal_rank` keep the order alone, and any increasing change of the scores leaves them as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev

from rag_lab.stages.kinds import RRF_CONSTANT, Normalization


def normalize(
    scores: Sequence[float], method: Normalization, constant: int = RRF_CONSTANT
) -> tuple[list[float], float]:
    """Return the normalized scores of one ranked list, and what a unit that is not in the list counts.

    Args:
        scores: of one search, best first.
        method: `none` leaves them as they are; `min_max` maps them linearly to [0, 1] (equal scores to 1); `z_score` to
            mean 0 and standard deviation 1 (equal scores to 0); `rank` to 1 - (rank - 1) / n, ranks from 1;
            `reciprocal_rank` to 1 / (constant + rank).
        constant: damps the first ranks of `reciprocal_rank`.

    Returns:
        One value a score, never increasing, and the value of absence: 0; with `z_score`, which puts half a list below
        0, the value of the list's last unit.
    """
    n = len(scores)
    if method == "rank":
        return [1 - position / n for position in range(n)], 0.0
    if method == "reciprocal_rank":
        return [1 / (constant + rank) for rank in range(1, n + 1)], 0.0
    if method == "min_max":
        return min_max(scores, equal=1.0), 0.0
    if method == "z_score":
        values = _z_scores(scores)
        return values, min(values, default=0.0)
    return list(scores), 0.0


def min_max(scores: Sequence[float], equal: float) -> list[float]:
    """Scale linearly to [0, 1]; equal scores all become `equal`."""
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    return [(score - low) / (high - low) if high > low else equal for score in scores]


def _z_scores(scores: Sequence[float]) -> list[float]:
    mean, deviation = (fmean(scores), pstdev(scores)) if scores else (0.0, 0.0)
    return [(score - mean) / deviation if deviation > 0 else 0.0 for score in scores]
