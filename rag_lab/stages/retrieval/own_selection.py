"""A selection of one's own: `(question, passages, scores) -> positions kept`, in the order in which they are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

from rag_lab._kit.own_code import OwnCodeError
from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.records import Hit, Trace
from rag_lab.stages.stage import Outcome

STEP = "own_selection"  # under which a hit keeps the score of its place


@dataclass(frozen=True)
class SelectPlace:
    """What was retrieved goes out with its scores, best first; positions come back, of which the first `keep` stay."""

    index: CorpusIndex
    keep: int

    name: ClassVar[str] = "select"
    reads: ClassVar[tuple[str, ...]] = ("search_query", "ranked")
    writes: ClassVar[tuple[str, ...]] = ("ranked",)

    def identity(self) -> Mapping[str, Any]:
        """Index (for the texts), and how many are kept."""
        return {"version": 1, "index": self.index.digest, "keep": self.keep}

    def arguments(self, trace: Trace) -> tuple[Any, ...] | Outcome:
        """Return the question that is searched, the texts, and their scores."""
        if not trace.ranked:
            return Outcome({"ranked": ()}, seconds=0.0)
        texts = [self.index.text(hit) for hit in trace.ranked]
        return trace.search_query or trace.question.text, texts, [hit.score for hit in trace.ranked]

    def outcome(self, trace: Trace, returned: Any) -> Outcome:
        """Set the hits at these positions."""
        n = len(trace.ranked)
        positions = _positions(returned, n)
        kept = [trace.ranked[position] for position in positions[: self.keep]]
        left = f"{n - len(kept)} of {n} left out" if len(kept) < n else ""
        return Outcome({"ranked": tuple(_falling(kept))}, reason=left)


def _positions(returned: Any, n: int) -> list[int]:
    if isinstance(returned, str) or not isinstance(returned, Iterable):
        raise OwnCodeError(f"the selection returned {type(returned).__name__} where positions are due")
    positions = []
    for value in returned:
        if isinstance(value, bool) or not hasattr(value, "__index__") or not 0 <= value.__index__() < n:
            raise OwnCodeError(f"the selection returned {value!r} where a position from 0 to {n - 1} is due")
        positions.append(value.__index__())
    if len(set(positions)) < len(positions):
        raise OwnCodeError("the selection returned a position twice")
    return positions


def _falling(hits: Sequence[Hit]) -> Sequence[Hit]:
    """Return the hits with the scores that order them: their own, or 1 / rank where those do not."""
    if all(first.score >= second.score for first, second in pairwise(hits)):
        return hits
    return [
        replace(hit, score=1 / rank, scores={**hit.scores, STEP: 1 / rank}) for rank, hit in enumerate(hits, start=1)
    ]
