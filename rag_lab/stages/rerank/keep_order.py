"""No reranking: the candidates in the order of the merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_lab.records import Trace
from rag_lab.stages.parts import Parts
from rag_lab.stages.stage import Outcome
from rag_lab.stages.switched_off import OFF


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
        return [Outcome({"ranked": trace.candidates[: self.keep]}, reason=OFF, seconds=0.0) for trace in traces]


def keep_order(parts: Parts) -> KeepOrder:
    """Return the stage for a pipeline."""
    return KeepOrder(n_kept(parts))


def n_kept(parts: Parts) -> int:
    """Return how many hits a reranker hands on: all where a selection follows, else twice what the reader gets."""
    return parts.rerank.input_limit if parts.selects else 2 * parts.rerank.final_k
