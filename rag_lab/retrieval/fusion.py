"""Reciprocal rank fusion (Cormack, Clarke and Büttcher 2009, section 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag_lab.records import Hit

RRF_CONSTANT = 60


def reciprocal_rank_fusion(lists: Sequence[Sequence[Hit]], limit: int) -> list[Hit]:
    """Merge ranked lists, duplicates removed by parent id, best first, at most `limit`.

    A parent's score is the sum of 1 / (60 + rank) over the lists, ranks from 1. Ties are broken by the best rank that
    a parent has in any list, then by id, so the order of `lists` does not matter to the ranking. A parent keeps the
    scores of every list, and the best-matching child of the list that ranks it highest.
    """
    entries: dict[str, list[tuple[int, Hit]]] = {}
    for hits in lists:
        for rank, hit in enumerate(hits, start=1):
            entries.setdefault(hit.parent_id, []).append((rank, hit))
    fused = [(_fuse(found), min(rank for rank, _ in found)) for found in entries.values()]
    fused.sort(key=lambda item: (-item[0].score, item[1], item[0].parent_id))
    return [hit for hit, _ in fused[:limit]]


def _fuse(found: Sequence[tuple[int, Hit]]) -> Hit:
    # Summed from the best rank down, so that rounding does not depend on the order of the lists.
    ranked = sorted(found, key=lambda item: (item[0], item[1].chunk_id))
    score = sum(1 / (RRF_CONSTANT + rank) for rank, _ in ranked)
    scores = {step: value for _, hit in ranked for step, value in hit.scores.items()}
    return replace(ranked[0][1], score=score, scores={**scores, "rrf": score})
