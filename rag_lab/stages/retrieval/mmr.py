"""Maximal marginal relevance (Carbonell and Goldstein 1998): relevant, and unlike what was chosen before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rag_lab.models.protocols import Vectors


def maximal_marginal_relevance(
    relevance: Sequence[float], vectors: Vectors, keep: int, trade_off: float
) -> list[tuple[int, float]]:
    """Choose `keep` items one after the other, each by trade_off * relevance - (1 - trade_off) * similarity.

    Similarity is the largest cosine with an item chosen before, 0 where none is positive or nothing was chosen.

    Args:
        relevance: one value an item, in [0, 1] so that it has the scale of a cosine.
        vectors: unit vectors of the items, (n, dim).
        keep: how many are chosen; all where there are fewer.
        trade_off: 1 orders by relevance alone, 0 by difference alone.

    Returns:
        Position and value of each chosen item, values never increasing; of equal values, the first position.
    """
    similarity = np.zeros(len(relevance))
    left = np.ones(len(relevance), bool)
    chosen: list[tuple[int, float]] = []
    for _ in range(min(keep, len(relevance))):
        values = trade_off * np.asarray(relevance) - (1 - trade_off) * similarity
        position = _first_best(values, left)
        chosen.append((position, float(values[position])))
        left[position] = False
        similarity = np.maximum(similarity, vectors @ vectors[position])
    return chosen


def _first_best(values: npt.NDArray[np.float64], left: npt.NDArray[np.bool_]) -> int:
    return int(np.argmax(np.where(left, values, -np.inf)))
