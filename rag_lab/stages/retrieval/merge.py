"""Merge what the searches found into the candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_lab.records import Hit, Trace
from rag_lab.stages.kinds import Merging
from rag_lab.stages.parts import Parts
from rag_lab.stages.retrieval.fusion import merged, reciprocal_rank_fusion
from rag_lab.stages.retrieval.hyde_search import HYDE
from rag_lab.stages.stage import Outcome


@dataclass(frozen=True)
class Merge:
    """Put base and HyDE hits together, each unit once, at most `limit`; where one search alone found any, they stay.

    `rrf` fuses them by reciprocal rank. `base_first` has all base hits in their order, then HyDE's that are not among
    them: cosines with two texts have no common scale, so a hit's score is then 1 / place.

    That nothing was found is a result: the retrieval measures are 0, and the reader has to do without.
    """

    limit: int
    how: Merging = "rrf"

    name: ClassVar[str] = "merge"
    reads: ClassVar[tuple[str, ...]] = ("base_hits", f"hits.{HYDE}")
    writes: ClassVar[tuple[str, ...]] = ("candidates",)
    batch_size: ClassVar[int] = 1000
    costly: ClassVar[bool] = False

    def identity(self) -> Mapping[str, Any]:
        """The limit, and how the two lists are put together."""
        return {"version": 3, "limit": self.limit, **({} if self.how == "rrf" else {"how": self.how})}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Fuse each trace's lists."""
        return [self._merge(trace) for trace in traces]

    def _merge(self, trace: Trace) -> Outcome:
        lists = [hits for hits in (trace.base_hits, trace.hits.get(HYDE, ())) if hits]
        candidates = lists[0][: self.limit] if len(lists) == 1 else self._both(lists)
        return Outcome({"candidates": tuple(candidates)}, reason="" if candidates else "nothing was found")

    def _both(self, lists: Sequence[Sequence[Hit]]) -> Sequence[Hit]:
        return (reciprocal_rank_fusion if self.how == "rrf" else one_after_the_other)(lists, self.limit)


def one_after_the_other(lists: Sequence[Sequence[Hit]], limit: int) -> list[Hit]:
    """Return the first list, then what each next one adds, at most `limit`; the score is 1 / place.

    A unit that stands in several lists keeps its place and its child in the first of them, and the scores of all.
    """
    found: dict[str, list[tuple[int, Hit]]] = {}
    for number, hits in enumerate(lists):
        for hit in hits:
            found.setdefault(hit.parent_id, []).append((number, hit))
    first = list(found.values())[:limit]
    return [merged(same, 1 / place, "base_first") for place, same in enumerate(first, start=1)]


def merge(parts: Parts) -> Merge:
    """Return the stage for a pipeline; without HyDE there is one list, and nothing to be put together."""
    return Merge(parts.rerank.input_limit, "rrf" if parts.query.hyde == "none" else parts.retrieval.merge)
