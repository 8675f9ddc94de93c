"""Select from the ranked hits: cut the list at its knee, and reorder what is left for diversity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.models.protocols import Embedder
from rag_lab.records import Hit, Trace
from rag_lab.stages.parts import Parts
from rag_lab.stages.retrieval.choices import Cut, Diversity
from rag_lab.stages.retrieval.knee import before_largest_drop
from rag_lab.stages.retrieval.mmr import maximal_marginal_relevance
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
            "version": 1,
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
            Outcome({"ranked": tuple(hits)}, reason=self._reason(len(trace.ranked), len(left)))
            for trace, left, hits in zip(traces, cut, selected, strict=True)
        ]

    def _cut(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        return hits[: before_largest_drop([hit.score for hit in hits])] if self.cut == "knee" else hits

    def _diversify(self, lists: Sequence[Sequence[Hit]]) -> list[list[Hit]]:
        """Embed the children of the whole batch in one call, then choose from each list."""
        texts = [self.index.child(hit.chunk_id).text for hits in lists for hit in hits]
        if not texts:
            return [[] for _ in lists]
        vectors = self.embedder.embed_documents(texts)
        chosen, start = [], 0
        for hits in lists:
            relevance, _ = normalize([hit.score for hit in hits], "min_max")
            picks = maximal_marginal_relevance(relevance, vectors[start : start + len(hits)], self.keep, self.trade_off)
            chosen.append([_scored(hits[position], value) for position, value in picks])
            start += len(hits)
        return chosen

    def _reason(self, n_ranked: int, n_left: int) -> str:
        return f"cut at the knee: {n_left} of {n_ranked}" if n_left < n_ranked else ""


def _scored(hit: Hit, value: float) -> Hit:
    return replace(hit, score=value, scores={**hit.scores, "mmr": value})


def cut(parts: Parts) -> Select:
    """Return the stage for a pipeline."""
    select, keep = parts.select, 2 * parts.rerank.final_k
    return Select(parts.index, parts.embedder, select.cut, select.diversity, select.mmr_trade_off, keep)
