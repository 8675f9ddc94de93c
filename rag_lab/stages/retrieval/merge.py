"""Merge what the searches found into the candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_lab.records import Trace
from rag_lab.stages.retrieval.fusion import reciprocal_rank_fusion
from rag_lab.stages.retrieval.search import HYDE
from rag_lab.stages.stage import Outcome


@dataclass(frozen=True)
class Merge:
    """Fuse base and HyDE hits by reciprocal rank, at most `limit`; where only one search found any, its scores stay.

    That nothing was found is a result: the retrieval measures are 0, and the reader has to do without.
    """

    limit: int

    name: ClassVar[str] = "merge"
    reads: ClassVar[tuple[str, ...]] = ("base_hits", f"hits.{HYDE}")
    writes: ClassVar[tuple[str, ...]] = ("candidates",)
    batch_size: ClassVar[int] = 1000
    costly: ClassVar[bool] = False

    def identity(self) -> Mapping[str, Any]:
        """The limit."""
        return {"version": 2, "limit": self.limit}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Fuse each trace's lists."""
        return [self._merge(trace) for trace in traces]

    def _merge(self, trace: Trace) -> Outcome:
        lists = [hits for hits in (trace.base_hits, trace.hits.get(HYDE, ())) if hits]
        candidates = lists[0][: self.limit] if len(lists) == 1 else reciprocal_rank_fusion(lists, self.limit)
        return Outcome({"candidates": tuple(candidates)}, reason="" if candidates else "nothing was found")
