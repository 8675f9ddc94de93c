"""Fusion of ranked lists: a weighted sum of normalized scores; with reciprocal ranks it is reciprocal rank fusion.

Fox and Shaw 1994 (CombSUM); Cormack, Clarke and Büttcher 2009, section 2 (reciprocal rank fusion). Of the
normalizations `min_max` and `z_score` keep the gaps between scores and so depend on their scale only up to a linear
change; `rank` and `reciprocal_rank` keep the order alone: any increasing change of the scores leaves them as they are.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean, pstdev

from rag_lab._kit.custom_code import CustomCodeError, numbers
from rag_lab.records import Hit, Trace
from rag_lab.stages.stage import BuiltInStage, CustomStage, Exchange, Outcome, Parts, Stage, stage_of
from rag_lab.stages.steps import FUSIONS, RRF, RRF_CONSTANT, Merging, Normalization

RETRIEVE = "retrieve"
HYDE = "hyde"  # the search by hypothetical document
CUSTOM_SCORE = "own_fusion"  # under which a hit keeps the score of a custom fusion


def fusion_stage(parts: Parts, weights: Mapping[str, float]) -> Stage:
    """Return what combines the searches that have these weights; of a single one nothing else counts."""
    retrieval, k = parts.retrieval, parts.retrieval.base_k
    several = len(weights) > 1
    least = retrieval.min_score if several else None
    # Reciprocal ranks, whatever `retrieval.normalization` says.
    normalization = "reciprocal_rank" if RRF in retrieval.mode.split("+") else retrieval.normalization
    constant = retrieval.rrf_constant if normalization == "reciprocal_rank" else 0
    combine = Combine(dict.fromkeys(weights, 1.0), "none", 0, k)
    if several:
        combine = Combine(weights, normalization, constant, k, least)
    parameters = {"searches": tuple(weights), "k": k, "min_score": least}
    writes = ("base_hits",)
    custom = partial(CustomStage, "CustomFusion", RETRIEVE, combine.reads, writes, _fused, parameters, version=2)
    return stage_of(FUSIONS, "fusion", retrieval.fusion, parts, {"weighted": lambda: combine}, custom)


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
        mean, deviation = (fmean(scores), pstdev(scores)) if scores else (0.0, 0.0)
        values = [(score - mean) / deviation if deviation > 0 else 0.0 for score in scores]
        return values, min(values, default=0.0)
    return list(scores), 0.0


def min_max(scores: Sequence[float], equal: float) -> list[float]:
    """Scale linearly to [0, 1]; equal scores all become `equal`."""
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    return [(score - low) / (high - low) if high > low else equal for score in scores]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The hits of one search and how much they count; the order of equal scores is kept, that of others made sure."""

    hits: Sequence[Hit]
    weight: float = 1.0


def fuse(
    rankings: Sequence[Ranking], limit: int, normalization: Normalization, step: str, constant: int = RRF_CONSTANT
) -> list[Hit]:
    """Merge ranked lists, duplicates removed by parent id, best first, at most `limit`.

    A unit's score is the sum over the lists of weight times normalized score; see `normalize` for the methods, and for
    what a list counts that does not hold the unit. A tie goes to the unit that ranks better in the list with the
    largest weight, where a unit that this list does not hold ranks last. Of lists with the same weight the one that
    stands first in `rankings` decides. A unit keeps the scores of every step, and the best-matching child of the list
    that ranks it highest. The new score is kept under the name `step`, too.
    """
    # By unit, for each list that holds it: the list's place, the first of which has the largest weight, the rank, the
    # hit, and what the list adds to the unit's score beyond what it adds to a unit that it does not hold.
    entries: dict[str, list[tuple[int, int, Hit, float]]] = {}
    floors: list[float] = []
    for place, ranking in enumerate(sorted(rankings, key=lambda one: -one.weight)):
        hits = sorted(ranking.hits, key=lambda hit: -hit.score)
        values, absent = normalize([hit.score for hit in hits], normalization, constant)
        floors.append(ranking.weight * absent)
        for rank, (hit, value) in enumerate(zip(hits, values, strict=True), start=1):
            entries.setdefault(hit.parent_id, []).append((place, rank, hit, ranking.weight * (value - absent)))
    floor = math.fsum(floors)
    fused = []
    for found in entries.values():
        score = math.fsum([floor, *(value for *_, value in found)])  # exact: rounding does not depend on the order
        hit = merged([(rank, hit) for _, rank, hit, _ in found], score, step)
        fused.append((-score, [(place, rank) for place, rank, *_ in found], hit))
    return [hit for *_, hit in sorted(fused, key=lambda item: item[:2])[:limit]]


def reciprocal_rank_fusion(lists: Sequence[Sequence[Hit]], limit: int) -> list[Hit]:
    """Merge ranked lists by the sum of 1 / (60 + rank), ranks from 1; see `fuse`."""
    return fuse([Ranking(hits) for hits in lists], limit, "reciprocal_rank", "rrf")


def merged(found: Sequence[tuple[int, Hit]], score: float, step: str) -> Hit:
    """Return one unit that several lists hold, by its rank in each, with a new score and the best score of every step.

    It keeps the child of the list that ranks it highest, of several such lists the first in `found`.
    """
    ranked = sorted(found, key=lambda item: item[0])
    scores: dict[str, float] = {}
    for _, hit in ranked:
        for name, value in hit.scores.items():
            scores[name] = max(value, scores.get(name, value))
    return replace(ranked[0][1], score=score, scores={**scores, step: score})


def scoring(hits: Sequence[Hit], least: float | None) -> Sequence[Hit]:
    """Return the hits whose score is not below `least`; all where there is no such threshold."""
    return hits if least is None else [hit for hit in hits if hit.score >= least]


@dataclass(frozen=True)
class Combine(BuiltInStage):
    """Fuse the searches in `weights`, at most k hits, none below `min_score`; the list of a single one stays."""

    weights: Mapping[str, float]
    normalization: Normalization
    constant: int
    k: int
    min_score: float | None = None

    VERSION = 2
    name = RETRIEVE
    writes = ("base_hits",)

    @property
    def reads(self) -> tuple[str, ...]:
        """The hits of each search."""
        return tuple(f"hits.{search}" for search in self.weights)

    def outcome(self, trace: Trace) -> Outcome:
        """Combine the lists of one trace."""
        rankings = [Ranking(trace.hits.get(search, ()), weight) for search, weight in self.weights.items()]
        if len(rankings) == 1:
            return Outcome({"base_hits": tuple(rankings[0].hits[: self.k])})
        step = "rrf" if self.normalization == "reciprocal_rank" else "weighted"
        fused = fuse(rankings, self.k, self.normalization, step, self.constant)
        return Outcome({"base_hits": tuple(scoring(fused, self.min_score))})


def _fused(trace: Trace, searches: Sequence[str], k: int, min_score: float | None) -> Exchange:
    """`(lists, k) -> [(id, score)]`, of `[(id, score)]` by search; the best k from `min_score` on stay.

    A unit keeps the child of the search that ranks it highest.
    """
    lists = {name: [(hit.parent_id, hit.score) for hit in trace.hits.get(name, ())] for name in searches}
    if not any(lists.values()):
        return Outcome({"base_hits": ()}, seconds=0.0)
    returned = yield lists, k
    found: dict[str, list[tuple[int, Hit]]] = {}
    for name in searches:
        for rank, hit in enumerate(trace.hits.get(name, ()), start=1):
            found.setdefault(hit.parent_id, []).append((rank, hit))
    try:
        pairs = [(str(unit_id), score) for unit_id, score in returned]
    except (TypeError, ValueError):
        what = type(returned).__name__
        raise CustomCodeError(f"the fusion returned {what} where (id, score) pairs are due") from None
    values = numbers([score for _, score in pairs], len(pairs), "the fusion")
    scores = {unit_id: value for (unit_id, _), value in zip(pairs, values, strict=True)}
    if len(scores) < len(pairs):
        raise CustomCodeError("the fusion returned an id twice")
    if strangers := [unit_id for unit_id in scores if unit_id not in found]:
        raise CustomCodeError(f"the fusion returned {strangers[0]!r}, which no search has found")
    best = sorted(scores.items(), key=lambda item: -item[1])[:k]
    hits = [merged(found[unit_id], score, CUSTOM_SCORE) for unit_id, score in best]
    return Outcome({"base_hits": tuple(scoring(hits, min_score))})


@dataclass(frozen=True)
class Merge(BuiltInStage):
    """Put base and HyDE hits together, each unit once, at most `limit`; where one search alone found any, they stay.

    `rrf` fuses them by reciprocal rank. `base_first` has all base hits, then HyDE's others, with the score 1 / place:
    cosines with two texts have no common scale. That nothing was found is a result, too.
    """

    limit: int
    how: Merging = "rrf"

    VERSION = 3
    name = "merge"
    reads = ("base_hits", f"hits.{HYDE}")
    writes = ("candidates",)

    def outcome(self, trace: Trace) -> Outcome:
        """Fuse the lists of one trace."""
        lists = [hits for hits in (trace.base_hits, trace.hits.get(HYDE, ())) if hits]
        candidates: Sequence[Hit]
        if len(lists) == 1:
            candidates = lists[0][: self.limit]
        elif self.how == "base_first":  # a unit keeps its place and its child in the first list, and the scores of all
            found: dict[str, list[tuple[int, Hit]]] = {}
            for number, hits in enumerate(lists):
                for hit in hits:
                    found.setdefault(hit.parent_id, []).append((number, hit))
            first = list(found.values())[: self.limit]
            candidates = [merged(same, 1 / place, "base_first") for place, same in enumerate(first, start=1)]
        else:
            candidates = reciprocal_rank_fusion(lists, self.limit)
        return Outcome({"candidates": tuple(candidates)}, reason="" if candidates else "nothing was found")
