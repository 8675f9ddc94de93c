"""Fusion of ranked lists: a weighted sum of normalized scores; with reciprocal ranks it is reciprocal rank fusion.

Fox and Shaw 1994 (CombSUM); Cormack, Clarke and Büttcher 2009, section 2 (reciprocal rank fusion).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_lab.records import Hit
from rag_lab.stages.kinds import RRF_CONSTANT, Normalization
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
    """One unit in one list, of which the first is the one with the largest weight."""

    place: int  # of the list
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
    what a list counts that does not hold the unit. A tie goes to the unit that ranks better in the list with the
    largest weight, where a unit that this list does not hold ranks last. Of lists with the same weight the one that
    stands first in `rankings` decides. A unit keeps the scores of every step, and the best-matching child of the list
    that ranks it highest. The new score is kept under the name `step`, too.
    """
    entries: dict[str, list[_Entry]] = {}
    floors: list[float] = []
    for place, ranking in enumerate(sorted(rankings, key=lambda one: -one.weight)):
        hits = ranking.by_score()
        values, absent = normalize([hit.score for hit in hits], normalization, constant)
        floors.append(ranking.weight * absent)
        for rank, (hit, value) in enumerate(zip(hits, values, strict=True), start=1):
            entry = _Entry(place, rank, hit, ranking.weight * (value - absent))
            entries.setdefault(hit.parent_id, []).append(entry)
    floor = math.fsum(floors)
    fused = [(_fuse(found, floor, step), [(entry.place, entry.rank) for entry in found]) for found in entries.values()]
    fused.sort(key=lambda item: (-item[0].score, item[1]))
    return [hit for hit, _ in fused[:limit]]


def reciprocal_rank_fusion(lists: Sequence[Sequence[Hit]], limit: int) -> list[Hit]:
    """Merge ranked lists by the sum of 1 / (60 + rank), ranks from 1; see `fuse`."""
    return fuse([Ranking(hits) for hits in lists], limit, "reciprocal_rank", "rrf")


def _fuse(found: Sequence[_Entry], floor: float, step: str) -> Hit:
    score = math.fsum([floor, *(entry.value for entry in found)])  # exact: rounding does not depend on the order
    return merged([(entry.rank, entry.hit) for entry in found], score, step)


def merged(found: Sequence[tuple[int, Hit]], score: float, step: str) -> Hit:
    """Return one unit that several lists hold, by its rank in each, with a new score.

    It keeps the child of the list that ranks it highest, of several such lists the first in `found`, and the best
    score of every step.
    """
    ranked = sorted(found, key=lambda item: item[0])
    scores: dict[str, float] = {}
    for _, hit in ranked:
        for name, value in hit.scores.items():
            scores[name] = max(value, scores.get(name, value))
    return replace(ranked[0][1], score=score, scores={**scores, step: score})
