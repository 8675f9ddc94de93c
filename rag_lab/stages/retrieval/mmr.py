"""Maximal marginal relevance (Carbonell and Goldstein 1998): relevant, and unlike what was chosen before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.models.protocols import Embedder, Vectors
from rag_lab.records import Hit


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


@dataclass(frozen=True)
class SearchMmr:
    """Chooses among the `fetch_k` units that a dense search finds; relevance is their cosine with what is searched."""

    index: CorpusIndex
    embedder: Embedder
    fetch_k: int
    trade_off: float

    def identity(self) -> Mapping[str, Any]:
        """How many are found, and the trade-off; model and index are the search's."""
        return {"fetch_k": self.fetch_k, "trade_off": self.trade_off}

    def choose(self, lists: Sequence[Sequence[Hit]], keep: int, step: str) -> list[list[Hit]]:
        """Return `keep` of each list, each with the cosine that it has under the name `step`."""
        relevance = [[hit.scores[step] for hit in hits] for hits in lists]
        return diversified(self.index, self.embedder, lists, relevance, keep, self.trade_off)


def diversified(
    index: CorpusIndex,
    embedder: Embedder,
    lists: Sequence[Sequence[Hit]],
    relevance: Sequence[Sequence[float]],
    keep: int,
    trade_off: float,
) -> list[list[Hit]]:
    """Choose `keep` hits of each list by the embeddings of their best children, which are made in one call.

    A hit's new score is the value that chose it, kept under the name `mmr`, too.
    """
    texts = [index.child(hit.chunk_id).text for hits in lists for hit in hits]
    if not texts:
        return [[] for _ in lists]
    vectors = embedder.embed_documents(texts)
    chosen, start = [], 0
    for hits, values in zip(lists, relevance, strict=True):
        picks = maximal_marginal_relevance(values, vectors[start : start + len(hits)], keep, trade_off)
        chosen.append([_scored(hits[position], value) for position, value in picks])
        start += len(hits)
    return chosen


def _scored(hit: Hit, value: float) -> Hit:
    return replace(hit, score=value, scores={**hit.scores, "mmr": value})
