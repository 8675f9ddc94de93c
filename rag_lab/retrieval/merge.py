"""Merge what the searches found into the candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_lab.records import Trace
from rag_lab.retrieval.fusion import reciprocal_rank_fusion
from rag_lab.stage import Outcome


@dataclass(frozen=True)
class Merge:
    """Fuse base and HyDE parents, at most `limit`; a question for which nothing was found has failed."""

    limit: int

    name: ClassVar[str] = "merge"
    reads: ClassVar[tuple[str, ...]] = ("base_hits", "hyde_hits")
    writes: ClassVar[tuple[str, ...]] = ("candidates",)
    batch_size: ClassVar[int] = 1000
    costly: ClassVar[bool] = False

    def identity(self) -> Mapping[str, Any]:
        """The limit."""
        return {"version": 1, "limit": self.limit}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Fuse each trace's lists."""
        return [self._merge(trace) for trace in traces]

    def _merge(self, trace: Trace) -> Outcome:
        candidates = reciprocal_rank_fusion([trace.base_hits, trace.hyde_hits], self.limit)
        if not candidates:
            return Outcome(status="failed", reason="nothing was found")
        return Outcome({"candidates": tuple(candidates)})
