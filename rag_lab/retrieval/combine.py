"""Combine the searches by question into the base hits, as the mode of retrieval says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_lab.records import Hit, Trace
from rag_lab.retrieval.choices import Normalization, SearchName
from rag_lab.retrieval.fusion import Ranking, fuse
from rag_lab.stage import Outcome


@dataclass(frozen=True)
class Combine:
    """Fuse the lists of the searches in `weights`, at most k hits; the list of a single search stays as it is."""

    weights: Mapping[SearchName, float]
    normalization: Normalization
    constant: int
    k: int

    name: ClassVar[str] = "retrieve"
    reads: ClassVar[tuple[str, ...]] = ("dense_hits", "bm25_hits", "tfidf_hits")
    writes: ClassVar[tuple[str, ...]] = ("base_hits",)
    batch_size: ClassVar[int] = 1000
    costly: ClassVar[bool] = False

    def identity(self) -> Mapping[str, Any]:
        """Which searches count how much, and how their scores are made comparable."""
        return {
            "version": 1,
            "weights": dict(self.weights),
            "normalization": self.normalization,
            "constant": self.constant,
            "k": self.k,
        }

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Combine each trace's lists."""
        return [Outcome({"base_hits": tuple(self._combine(trace))}) for trace in traces]

    def _combine(self, trace: Trace) -> Sequence[Hit]:
        found: dict[SearchName, tuple[Hit, ...]] = {
            "dense": trace.dense_hits,
            "bm25": trace.bm25_hits,
            "tfidf": trace.tfidf_hits,
        }
        rankings = [Ranking(found[name], weight) for name, weight in self.weights.items()]
        if len(rankings) == 1:
            return rankings[0].hits[: self.k]
        step = "rrf" if self.normalization == "reciprocal_rank" else "weighted"
        return fuse(rankings, self.k, self.normalization, step, self.constant)
