"""A fusion of one's own: `(lists, k) -> [(id, score)]`; `lists` has the `[(id, score)]` of each search, best first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_lab._kit.own_code import OwnCodeError, numbers
from rag_lab.records import Hit, Trace
from rag_lab.stages.retrieval.fusion import merged
from rag_lab.stages.retrieval.search import scoring
from rag_lab.stages.stage import Outcome

STEP = "own_fusion"  # under which a hit keeps the score


@dataclass(frozen=True)
class FusionPlace:
    """What each search found goes out by the ids of units; at most `k` come back, none below `min_score`."""

    searches: tuple[str, ...]
    k: int
    min_score: float | None = None

    name: ClassVar[str] = "retrieve"
    writes: ClassVar[tuple[str, ...]] = ("base_hits",)

    @property
    def reads(self) -> tuple[str, ...]:
        """The hits of each search."""
        return tuple(f"hits.{search}" for search in self.searches)

    def identity(self) -> Mapping[str, Any]:
        """Which searches, how many hits, and the threshold."""
        found = {"version": 2, "searches": list(self.searches), "k": self.k}
        return found if self.min_score is None else {**found, "min_score": self.min_score}

    def arguments(self, trace: Trace) -> tuple[Any, ...] | Outcome:
        """Return what each search found, and k."""
        lists = {name: [(hit.parent_id, hit.score) for hit in trace.hits.get(name, ())] for name in self.searches}
        return (lists, self.k) if any(lists.values()) else Outcome({"base_hits": ()}, seconds=0.0)

    def outcome(self, trace: Trace, returned: Any) -> Outcome:
        """Set the units by falling score; a unit keeps the child of the search that ranks it highest."""
        found: dict[str, list[tuple[int, Hit]]] = {}
        for name in self.searches:
            for rank, hit in enumerate(trace.hits.get(name, ()), start=1):
                found.setdefault(hit.parent_id, []).append((rank, hit))
        scores = _scores(returned)
        if strangers := [unit_id for unit_id in scores if unit_id not in found]:
            raise OwnCodeError(f"the fusion returned {strangers[0]!r}, which no search has found")
        best = sorted(scores.items(), key=lambda item: -item[1])[: self.k]
        hits = [merged(found[unit_id], score, STEP) for unit_id, score in best]
        return Outcome({"base_hits": tuple(scoring(hits, self.min_score))})


def _scores(returned: Any) -> dict[str, float]:
    """Return the score of each unit, in the order in which they were returned."""
    try:
        pairs = [(str(unit_id), score) for unit_id, score in returned]
    except (TypeError, ValueError):
        raise OwnCodeError(f"the fusion returned {type(returned).__name__} where (id, score) pairs are due") from None
    values = numbers([score for _, score in pairs], len(pairs), "the fusion")
    scores = {unit_id: value for (unit_id, _), value in zip(pairs, values, strict=True)}
    if len(scores) < len(pairs):
        raise OwnCodeError("the fusion returned an id twice")
    return scores
