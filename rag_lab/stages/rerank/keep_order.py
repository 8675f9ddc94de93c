"""No reranking: the candidates in the order of the merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_lab.records import Trace
from rag_lab.stages.stage import Outcome


@dataclass(frozen=True)
class KeepOrder:
    """Keep the first `keep` candidates."""

    keep: int

    name: ClassVar[str] = "rerank"
    reads: ClassVar[tuple[str, ...]] = ("candidates",)
    writes: ClassVar[tuple[str, ...]] = ("ranked",)
    batch_size: ClassVar[int] = 1000
    costly: ClassVar[bool] = False

    def identity(self) -> Mapping[str, Any]:
        """How many are kept."""
        return {"version": 1, "name": "none", "keep": self.keep}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Cut each list."""
        return [Outcome({"ranked": trace.candidates[: self.keep]}, seconds=0.0) for trace in traces]
