"""Combine the searches by question into the base hits, as the mode of retrieval says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_lab.records import Hit, Trace
from rag_lab.stages.kinds import Normalization, combines_ranks
from rag_lab.stages.parts import Parts
from rag_lab.stages.retrieval.fusion import Ranking, fuse
from rag_lab.stages.retrieval.search import scoring
from rag_lab.stages.stage import Outcome


@dataclass(frozen=True)
class Combine:
    """Fuse the lists of the searches in `weights`, at most k hits, without those below `min_score`.

    The list of a single search stays as it is: that search knows the threshold.
    """

    weights: Mapping[str, float]
    normalization: Normalization
    constant: int
    k: int
    min_score: float | None = None

    name: ClassVar[str] = "retrieve"
    writes: ClassVar[tuple[str, ...]] = ("base_hits",)
    batch_size: ClassVar[int] = 1000
    costly: ClassVar[bool] = False

    @property
    def reads(self) -> tuple[str, ...]:
        """The hits of each search."""
        return tuple(f"hits.{search}" for search in self.weights)

    def identity(self) -> Mapping[str, Any]:
        """Which searches count how much, how their scores are made comparable, and the threshold."""
        found = {
            "version": 2,
            "weights": dict(self.weights),
            "normalization": self.normalization,
            "constant": self.constant,
            "k": self.k,
        }
        return found if self.min_score is None else {**found, "min_score": self.min_score}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Combine each trace's lists."""
        return [Outcome({"base_hits": tuple(self._combine(trace))}) for trace in traces]

    def _combine(self, trace: Trace) -> Sequence[Hit]:
        rankings = [Ranking(trace.hits.get(search, ()), weight) for search, weight in self.weights.items()]
        if len(rankings) == 1:
            return rankings[0].hits[: self.k]
        step = "rrf" if self.normalization == "reciprocal_rank" else "weighted"
        return scoring(fuse(rankings, self.k, self.normalization, step, self.constant), self.min_score)


def weighted(parts: Parts, weights: Mapping[str, float]) -> Combine:
    """Return the stage for a pipeline whose searches have these weights."""
    retrieval = parts.retrieval
    normalization = "reciprocal_rank" if combines_ranks(retrieval.mode) else retrieval.normalization
    min_score = retrieval.min_score if len(weights) > 1 else None
    return Combine(weights, normalization, retrieval.rrf_constant, retrieval.base_k, min_score)
