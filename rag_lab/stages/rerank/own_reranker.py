"""A reranker of one's own: `(question, passages) -> scores`, a score for each passage, None for one to leave out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from rag_lab._kit.own_code import OwnCodeError, numbers
from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.records import Hit, Trace
from rag_lab.stages.stage import Outcome

STEP = "own"  # under which a hit keeps the score


@dataclass(frozen=True)
class RerankPlace:
    """Texts of the candidates go out, the candidates come back by falling score, the first `keep` of them."""

    index: CorpusIndex
    keep: int
    passage: Literal["child", "parent"]

    name: ClassVar[str] = "rerank"
    reads: ClassVar[tuple[str, ...]] = ("search_query", "candidates")
    writes: ClassVar[tuple[str, ...]] = ("ranked",)

    def identity(self) -> Mapping[str, Any]:
        """Index (for the texts), what is read, and how many are kept."""
        return {"version": 1, "index": self.index.digest, "passage": self.passage, "keep": self.keep}

    def arguments(self, trace: Trace) -> tuple[Any, ...] | Outcome:
        """Return the question that is searched and the candidates' texts."""
        if not trace.candidates:
            return Outcome({"ranked": ()}, seconds=0.0)
        return trace.search_query or trace.question.text, [self._text(hit) for hit in trace.candidates]

    def outcome(self, trace: Trace, returned: Any) -> Outcome:
        """Set the candidates by falling score; ties keep the order of the merge."""
        if isinstance(returned, str) or (not isinstance(returned, Sequence) and not hasattr(returned, "__array__")):
            raise OwnCodeError(f"the reranker returned {type(returned).__name__} where a score for each passage is due")
        given = list(returned)
        if len(given) != len(trace.candidates):
            raise OwnCodeError(f"the reranker returned {len(given)} scores for {len(trace.candidates)} passages")
        kept = [(hit, score) for hit, score in zip(trace.candidates, given, strict=True) if score is not None]
        scores = numbers([score for _, score in kept], len(kept), "the reranker")
        scored = [_scored(hit, score) for (hit, _), score in zip(kept, scores, strict=True)]
        return Outcome({"ranked": tuple(sorted(scored, key=lambda hit: -hit.score)[: self.keep])})

    def _text(self, hit: Hit) -> str:
        return self.index.child(hit.chunk_id).text if self.passage == "child" else self.index.text(hit)


def _scored(hit: Hit, score: float) -> Hit:
    return replace(hit, score=score, scores={**hit.scores, STEP: score})
