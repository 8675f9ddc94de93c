"""Assemble the context: numbered passages with source and page, within a budget that is never exceeded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.records import Hit, Passage, Trace
from rag_lab.stages.answer.context_budget import ContextBudget, Wanted, budget_of
from rag_lab.stages.parts import Parts
from rag_lab.stages.stage import Outcome


@dataclass(frozen=True)
class Assemble:
    """Give each of the first `final_k` parents an equal share of what is left of the budget.

    A parent that fits its share stands whole and leaves the rest to those after it; a longer one is cut to a window
    around the child that matched, so that what was found is what is read.
    """

    index: CorpusIndex
    budget: ContextBudget
    final_k: int

    name: ClassVar[str] = "context"
    reads: ClassVar[tuple[str, ...]] = ("ranked",)
    writes: ClassVar[tuple[str, ...]] = ("passages",)
    batch_size: ClassVar[int] = 32
    costly: ClassVar[bool] = True

    def identity(self) -> Mapping[str, Any]:
        """Index (for the texts), the model that counts, and the budgets."""
        return {"version": 4, "index": self.index.digest, "final_k": self.final_k, **self.budget.identity()}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Assemble each trace's context."""
        return [self._assemble(trace.ranked[: self.final_k]) for trace in traces]

    def _assemble(self, hits: Sequence[Hit]) -> Outcome:
        passages = self.budget.shared([self._wanted(hit) for hit in hits])
        return Outcome({"passages": tuple(passages)}, reason=self.budget.left_out(len(hits), passages))

    def _wanted(self, hit: Hit) -> Wanted:
        """Return the hit's parent, around the middle of its child."""
        child, text = self.index.child(hit.chunk_id), self.index.text(hit)
        whole = Passage(0, hit.parent_id, hit.source, hit.page, hit.start, hit.end, text)
        return Wanted(whole, (child.start + child.end) // 2 - hit.start, self.index.page_starts(hit.source))


def retrieved(parts: Parts) -> Assemble:
    """Return the stage for a pipeline."""
    return Assemble(parts.index, budget_of(parts), parts.rerank.final_k)
