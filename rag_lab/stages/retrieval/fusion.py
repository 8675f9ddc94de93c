"""Fusion of ranked lists: a weighted sum of normalized scores; with reciprocal ranks it is reciprocal rank fusion.

Fox and Shaw 1994 (CombSUM); Cormack, Clarke and Büttcher 2009, section 2 (reciprocal rank fusion).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_lab.records import Hit
from rag_lab.stages.retrieval.choices import RRF_CONSTANT, Normalization
from rag_lab.stages.retrieval.normalization import normalize


@dataclass(frozen=True, slots=True)
class Ranking:
    """The hits of one search and how much they count; the order of equal scores is kept, that of others made sure."""

    hits: Sequence[Hit]
    weight: float = 1.0

    def by_score(self) -> list[Hit]:
        """Return the hits best first."""
        return sorted(self.hits, key=lambda hit: -hit.score)


@dataclass(frozen=True, slots=True)
class _Entry:
    """One unit in one list."""

    rank: int
    hit: Hit
    value: float  # what the list adds to the unit's score beyond what it adds to a unit that it does not hold


def fuse(
    rankings: Sequence[Ranking],
    limit: int,
    normalization: Normalization,
    step: str,
    constant: int = RRF_CONSTANT,
) -> list[Hit]:
    """Merge ranked lists, duplicates removed by parent id, best first, at most `limit`.

    A unit's score is the sum over the lists of weight times normalized score; see `normalize` for the methods, and for
    what a list counts that does not hold the unit. Ties are broken by the best rank that a unit has in any list, then
    by id, so the order of `rankings` does not matter. A unit keeps the scores of every step, and the best-matching
    child of the list that ranks it highest. The new score is kept under the name `step`, too.
    """
    entries: dict[str, list[_Entry]] = {}
    floors: list[float] = []
    for ranking in rankings:
        hits = ranking.by_score()
        values, absent = normalize([hit.score for hit in hits], normalization, constant)
        floors.append(ranking.weight * absent)
        for rank, (hit, value) in enumerate(zip(hits, values, strict=True), start=1):
            entry = _Entry(rank, hit, ranking.weight * (value - absent))
            entries.setdefault(hit.parent_id, []).append(entry)
    floor = math.fsum(floors)
    fused = [_fuse(found, floor, step) for found in entries.values()]
    fused.sort(key=lambda item: (-item[0].score, item[1], item[0].parent_id))
    return [hit for hit, _ in fused[:limit]]


def reciprocal_rank_fusion(lists: Sequence[Sequence[Hit]], limit: int) -> list[Hit]:
    """Merge ranked lists by the sum of 1 / (60 + rank), ranks from 1; see `fuse`."""
    return fuse([Ranking(hits) for hits in lists], limit, "reciprocal_rank", "rrf")


def _fuse(found: Sequence[_Entry], floor: float, step: str) -> tuple[Hit, int]:
    """Return the fused hit and its best rank."""
    ranked = [(entry.rank, entry.hit) for entry in found]
    score = math.fsum([floor, *(entry.value for entry in found)])  # exact: rounding does not depend on the order
    return merged(ranked, score, step), min(rank for rank, _ in ranked)


def merged(found: Sequence[tuple[int, Hit]], score: float, step: str) -> Hit:
    """Return one unit that several lists hold, by its rank in each, with a new score.

    It keeps the child of the list that ranks it highest, and the best score of every step.
    """
    ranked = sorted(found, key=lambda item: (item[0], item[1].chunk_id))
    scores: dict[str, float] = {}
    for _, hit in ranked:
        for name, value in hit.scores.items():
            scores[name] = max(value, scores.get(name, value))
    return replace(ranked[0][1], score=score, scores={**scores, step: score})
