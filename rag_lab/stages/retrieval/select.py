"""Which hits are kept: those before the largest drop in score, by maximal marginal relevance, or as custom code says.

Carbonell and Goldstein 1998 (maximal marginal relevance): relevant, and unlike what was chosen before.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from rag_lab._kit.custom_code import CustomCodeError
from rag_lab.corpus.corpus_index import CorpusIndex
from rag_lab.models.protocols import Embedder, Vectors
from rag_lab.records import Hit, Trace
from rag_lab.stages.retrieval.fusion import normalize
from rag_lab.stages.stage import BuiltInStage, CustomStage, Exchange, Off, Outcome, Parts, Stage, stage_of
from rag_lab.stages.steps import SELECTIONS, Cut

SELECT = "select"
CUSTOM_SCORE = "own_selection"  # under which a hit keeps the score of its place in a custom selection


def select_stage(parts: Parts) -> Stage:
    """Return what selects from the ranked hits."""
    if not parts.selects:
        return Off(SELECT)
    select, index, keep = parts.select, parts.index, 2 * parts.rerank.final_k
    embedder, trade_off = (None, 0.0) if select.diversity == "none" else (parts.embedder, select.mmr_trade_off)
    built_in = {"cut": lambda: Select(index, embedder, select.cut, trade_off, keep)}
    reads, parameters = ("search_query", "ranked"), {"index": index, "keep": keep}
    custom = partial(CustomStage, "CustomSelection", SELECT, reads, ("ranked",), _selected, parameters)
    return stage_of(SELECTIONS, SELECT, select.name, parts, built_in, custom)


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
        position = int(np.argmax(np.where(left, values, -np.inf)))  # of equal values the first
        chosen.append((position, float(values[position])))
        left[position] = False
        similarity = np.maximum(similarity, vectors @ vectors[position])
    return chosen


@dataclass(frozen=True)
class SearchMmr:
    """Chooses among the `fetch_k` units that a dense search finds; relevance is their cosine with what is searched."""

    index: CorpusIndex
    embedder: Embedder
    fetch_k: int
    trade_off: float


def diversified(
    index: CorpusIndex,
    embedder: Embedder,
    lists: Sequence[Sequence[Hit]],
    relevance: Sequence[Sequence[float]],
    keep: int,
    trade_off: float,
) -> list[list[Hit]]:
    """Choose `keep` hits of each list by the embeddings of their best children; a hit's new score is that of `mmr`."""
    texts = index.searched_texts([index.chunks.child(hit.chunk_id) for hits in lists for hit in hits])
    if not texts:
        return [[] for _ in lists]
    vectors = embedder.embed_documents(texts)
    chosen, start = [], 0
    for hits, values in zip(lists, relevance, strict=True):
        picks = maximal_marginal_relevance(values, vectors[start : start + len(hits)], keep, trade_off)
        chosen.append(
            [
                replace(hits[position], score=value, scores={**hits[position].scores, "mmr": value})
                for position, value in picks
            ]
        )
        start += len(hits)
    return chosen


def before_largest_drop(scores: Sequence[float]) -> int:
    """Return how many of `scores`, best first, stand before the first largest drop; all without one, at least one."""
    drops = [first - second for first, second in pairwise(scores)]
    largest = max(drops, default=0.0)
    return drops.index(largest) + 1 if largest > 0 else len(scores)


@dataclass(frozen=True)
class Select(BuiltInStage):
    """Cut and diversify `ranked`, then keep `keep`; MMR's relevance is the score scaled to [0, 1] after the cut."""

    index: CorpusIndex
    embedder: Embedder | None  # for `mmr` alone
    cut: Cut
    trade_off: float
    keep: int

    VERSION = 2
    name = SELECT
    reads = ("ranked",)
    writes = ("ranked",)
    batch_size = 64
    costly = True

    def identity(self) -> Mapping[str, Any]:
        """What it is made of; where children are compared, also what stands before them."""
        return {**super().identity(), **(self.index.contexts.identity() if self.embedder else {})}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Select from each trace's list."""
        lists = [trace.ranked for trace in traces]
        if self.cut == "knee":
            lists = [hits[: before_largest_drop([hit.score for hit in hits])] for hits in lists]
        selected: Sequence[Sequence[Hit]] = [hits[: self.keep] for hits in lists]
        truncation = self.index.truncation if self.embedder else None  # of the children that are compared
        if self.embedder:
            relevance = [normalize([hit.score for hit in hits], "min_max")[0] for hits in lists]
            selected = diversified(self.index, self.embedder, lists, relevance, self.keep, self.trade_off)
        return [
            Outcome(
                {"ranked": tuple(hits)},
                reason=f"cut at the knee: {len(left)} of {len(trace.ranked)}" if len(left) < len(trace.ranked) else "",
                truncated_tokens=0 if truncation is None else sum(truncation.of_hits(left)),
            )
            for trace, left, hits in zip(traces, lists, selected, strict=True)
        ]


def _selected(trace: Trace, index: CorpusIndex, keep: int) -> Exchange:
    """`(question, passages, scores) -> positions kept`, in reading order; the first `keep` stay."""
    n = len(trace.ranked)
    if not n:
        return Outcome({"ranked": ()}, seconds=0.0)
    texts = [index.text(hit) for hit in trace.ranked]
    returned = yield trace.search_query or trace.question.text, texts, [hit.score for hit in trace.ranked]
    if isinstance(returned, str) or not isinstance(returned, Iterable):
        raise CustomCodeError(f"the selection returned {type(returned).__name__} where positions are due")
    positions = []
    for value in returned:
        if isinstance(value, bool) or not hasattr(value, "__index__") or not 0 <= value.__index__() < n:
            raise CustomCodeError(f"the selection returned {value!r} where a position from 0 to {n - 1} is due")
        positions.append(value.__index__())
    if len(set(positions)) < len(positions):
        raise CustomCodeError("the selection returned a position twice")
    kept = [trace.ranked[position] for position in positions[:keep]]
    left = f"{n - len(kept)} of {n} left out" if len(kept) < n else ""
    if any(first.score < second.score for first, second in pairwise(kept)):  # their scores do not order them
        kept = [
            replace(hit, score=1 / rank, scores={**hit.scores, CUSTOM_SCORE: 1 / rank})
            for rank, hit in enumerate(kept, start=1)
        ]
    return Outcome({"ranked": tuple(kept)}, reason=left)
