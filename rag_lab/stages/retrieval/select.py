"""Select from the ranked hits: cut the list at its knee, and reorder what is left for diversity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.models.protocols import Embedder
from rag_lab.records import Hit, Trace
from rag_lab.stages.kinds import Cut, Diversity
from rag_lab.stages.parts import Parts
from rag_lab.stages.retrieval.knee import before_largest_drop
from rag_lab.stages.retrieval.mmr import diversified
from rag_lab.stages.retrieval.normalization import normalize
from rag_lab.stages.stage import Outcome


@dataclass(frozen=True)
class Select:
    """Cut and diversify `ranked`, then keep the first `keep`.

    MMR compares the best children of the hits by the embedding model; relevance is the hit's score, scaled to [0, 1]
    over what is left after the cut.
    """

    index: CorpusIndex
    embedder: Embedder
    cut: Cut
    diversity: Diversity
    trade_off: float
    keep: int

    name: ClassVar[str] = "select"
    reads: ClassVar[tuple[str, ...]] = ("ranked",)
    writes: ClassVar[tuple[str, ...]] = ("ranked",)
    batch_size: ClassVar[int] = 64
    costly: ClassVar[bool] = True

    def identity(self) -> Mapping[str, Any]:
        """Cut, diversity with its model, and how many are kept."""
        mmr = {"embedder": self.embedder.identity(), "trade_off": self.trade_off}
        return {
            "version": 2,
            "index": self.index.digest,
            "cut": self.cut,
            "diversity": mmr if self.diversity == "mmr" else "none",
            "keep": self.keep,
        }

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Select from each trace's list."""
        cut = [self._cut(trace.ranked) for trace in traces]
        selected = self._diversify(cut) if self.diversity == "mmr" else [hits[: self.keep] for hits in cut]
        return [
            Outcome(
                {"ranked": tuple(hits)},
                reason=self._reason(len(trace.ranked), len(left)),
                truncated_tokens=self._unread(left),
            )
            for trace, left, hits in zip(traces, cut, selected, strict=True)
        ]

    def _cut(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        return hits[: before_largest_drop([hit.score for hit in hits])] if self.cut == "knee" else hits

    def _diversify(self, lists: Sequence[Sequence[Hit]]) -> list[list[Hit]]:
        relevance = [normalize([hit.score for hit in hits], "min_max")[0] for hits in lists]
        return diversified(self.index, self.embedder, lists, relevance, self.keep, self.trade_off)

    def _unread(self, hits: Sequence[Hit]) -> int:
        """Return how many tokens of the children that are compared were not read."""
        unread = self.index.unread if self.diversity == "mmr" else None
        return 0 if unread is None else sum(unread.of_hits(hits))

    def _reason(self, n_ranked: int, n_left: int) -> str:
        return f"cut at the knee: {n_left} of {n_ranked}" if n_left < n_ranked else ""


def cut(parts: Parts) -> Select:
    """Return the stage for a pipeline."""
    select, keep = parts.select, 2 * parts.rerank.final_k
    return Select(parts.index, parts.embedder, select.cut, select.diversity, select.mmr_trade_off, keep)
