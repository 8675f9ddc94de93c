"""Rerank by a model that reads question and passage together: a cross-encoder or a query likelihood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.models import shared
from rag_lab.models.limits.read_limit import unread_of_pairs
from rag_lab.models.protocols import PairScorer
from rag_lab.records import Hit, Trace
from rag_lab.stages.parts import Parts
from rag_lab.stages.rerank.keep_order import n_kept
from rag_lab.stages.retrieval.normalization import min_max
from rag_lab.stages.stage import Outcome


@dataclass(frozen=True)
class PairRerank:
    """Order candidates by `scorer`, keep the first `keep`.

    `retrieval_weight` above 0 adds the retrieval score of each candidate: both scores are scaled to [0, 1] over
    the question's candidates, since a log-likelihood and a cosine have no common unit, then summed with that weight.
    """

    step: Literal["cross_encoder", "query_likelihood"]
    scorer: PairScorer
    index: CorpusIndex
    keep: int
    passage: Literal["child", "parent"]
    retrieval_weight: float = 0.0

    name: ClassVar[str] = "rerank"
    reads: ClassVar[tuple[str, ...]] = ("search_query", "candidates")
    writes: ClassVar[tuple[str, ...]] = ("ranked",)
    batch_size: ClassVar[int] = 8
    costly: ClassVar[bool] = True

    def identity(self) -> Mapping[str, Any]:
        """Scorer, index (for the texts), what is read, and how scores are summed."""
        return {
            "version": 3,
            "step": self.step,
            "scorer": self.scorer.identity(),
            "index": self.index.digest,
            "passage": self.passage,
            "keep": self.keep,
            "retrieval_weight": self.retrieval_weight,
        }

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Score all pairs of the batch in one call, then order each trace's candidates."""
        pairs = self.pairs(traces)
        scores, unread = iter(self.scorer.score(pairs)), iter(unread_of_pairs(self.scorer, pairs))
        return [
            self._order(hits, [next(scores) for _ in hits], [next(unread) for _ in hits])
            for hits in (trace.candidates for trace in traces)
        ]

    def pairs(self, traces: Sequence[Trace]) -> list[tuple[str, str]]:
        """Return each trace's question with each of its candidates' texts, in order."""
        return [(trace.search_query or "", self._text(hit)) for trace in traces for hit in trace.candidates]

    def _text(self, hit: Hit) -> str:
        return self.index.child(hit.chunk_id).text if self.passage == "child" else self.index.text(hit)

    def _order(self, hits: Sequence[Hit], scores: Sequence[float], unread: Sequence[int]) -> Outcome:
        totals = self._totals(hits, scores)
        scored = [
            replace(hit, score=total, scores={**hit.scores, self.step: score})
            for hit, score, total in zip(hits, scores, totals, strict=True)
        ]
        scored.sort(key=lambda hit: -hit.score)  # stable: ties keep the order of the merge
        n_cut = sum(n > 0 for n in unread)
        reason = f"{n_cut} of {len(hits)} passages are longer than the reranker reads" if n_cut else ""
        return Outcome({"ranked": tuple(scored[: self.keep])}, reason=reason, truncated_tokens=sum(unread))

    def _totals(self, hits: Sequence[Hit], scores: Sequence[float]) -> list[float]:
        if not self.retrieval_weight:
            return list(scores)
        pairs = zip(min_max(scores, equal=0.0), min_max(_retrieval_scores(hits), equal=0.0), strict=True)
        return [score + self.retrieval_weight * other for score, other in pairs]


def by_cross_encoder(parts: Parts) -> PairRerank:
    """Return the stage of the cross-encoder that `models.cross_encoder` names."""
    scorer = parts.remembered(shared.cross_encoder(parts.model("cross_encoder")))
    return PairRerank("cross_encoder", scorer, parts.index, n_kept(parts), parts.rerank.passage)


def by_query_likelihood(parts: Parts) -> PairRerank:
    """Return the stage of the language model that `models.likelihood` names."""
    scorer = parts.remembered(shared.query_likelihood(parts.model("likelihood")))
    rerank = parts.rerank
    return PairRerank("query_likelihood", scorer, parts.index, n_kept(parts), rerank.passage, rerank.retrieval_weight)


def _retrieval_scores(hits: Sequence[Hit]) -> list[float]:
    """Return the better cosine of each hit, by question or by hypothetical document; merged scores where one has none.

    The cosines are preferred because merging by rank does away with the gaps between them.
    """
    cosines = [[hit.scores[step] for step in ("dense", "hyde") if step in hit.scores] for hit in hits]
    return [max(values) for values in cosines] if all(cosines) else [hit.score for hit in hits]
