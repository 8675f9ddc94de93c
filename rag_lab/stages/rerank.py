"""What orders the merged candidates: a model that reads question and passage together, a custom module, or nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from rag_lab._kit.custom_code import CustomCodeError, numbers
from rag_lab.corpus.corpus_index import CorpusIndex
from rag_lab.models.protocols import PairScorer
from rag_lab.models.truncation import truncated_of
from rag_lab.records import Hit, Trace
from rag_lab.stages.retrieval.fusion import min_max
from rag_lab.stages.stage import OFF, BuiltInStage, CustomStage, Exchange, Outcome, Parts, Stage, stage_of
from rag_lab.stages.steps import RERANKERS

CUSTOM_SCORE = "own"  # under which a hit keeps the score of a custom reranker

ReadText = Literal["child", "parent"]
PairScore = Literal["cross_encoder", "query_likelihood", "maxsim"]
ROLES: dict[PairScore, str] = {
    "cross_encoder": "cross_encoder",
    "query_likelihood": "likelihood",
    "maxsim": "late_interaction",
}
UNITS: dict[str, str] = {step: "vector pair" if step == "maxsim" else "pair" for step in ROLES}  # of what each scores
_UNTRAINED = ("query_likelihood", "maxsim")  # the search score counts as much, where nobody says


def rerank_stage(parts: Parts) -> Stage:
    """Return what reranks the candidates; it hands on all where a selection follows, else twice what is read."""
    rerank, index, passage = parts.rerank, parts.index, parts.rerank.passage
    keep = rerank.input_limit if parts.selects else 2 * rerank.final_k
    blend = float(rerank.name in _UNTRAINED) if rerank.blend is None else rerank.blend

    built_in: dict[str, Callable[[], Stage]] = {"none": lambda: KeepOrder(keep)}
    for step, role in ROLES.items():
        built_in[step] = lambda step=step, role=role: PairRerank(  # type: ignore[misc]
            step, parts.scorer(role), index, keep, passage, blend
        )
    parameters = {"index": index, "keep": keep, "passage": passage, "blend": blend}
    custom = partial(CustomStage, "CustomReranker", "rerank", PairRerank.reads, ("ranked",), _reranked, parameters)
    return stage_of(RERANKERS, "rerank", rerank.name, parts, built_in, custom)


@dataclass(frozen=True)
class KeepOrder(BuiltInStage):
    """Keep the first `keep` candidates, in the order of the merge."""

    keep: int

    name = "rerank"
    reads = ("candidates",)
    writes = ("ranked",)

    def outcome(self, trace: Trace) -> Outcome:
        """Cut the list."""
        return Outcome({"ranked": trace.candidates[: self.keep]}, reason=OFF, seconds=0.0)


@dataclass(frozen=True)
class PairRerank(BuiltInStage):
    """Order candidates by `scorer` and keep the first `keep`; see `blended`."""

    step: PairScore
    scorer: PairScorer
    index: CorpusIndex
    keep: int
    passage: ReadText
    blend: float = 0.0

    VERSION = 4
    name = "rerank"
    reads = ("search_query", "candidates")
    writes = ("ranked",)
    batch_size = 8
    costly = True

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Score all pairs of the batch in one call, then order each trace's candidates."""
        pairs = self.pairs(traces)
        scores, cut = iter(self.scorer.score(pairs)), iter(truncated_of(self.scorer, pairs))
        outcomes = []
        for hits in (trace.candidates for trace in traces):
            scored = blended(hits, [next(scores) for _ in hits], self.blend, self.step)
            missing = [n for n, _ in zip(cut, hits, strict=False) if n]
            reason = f"{len(missing)} of {len(hits)} passages are longer than the reranker reads" if missing else ""
            ranked = tuple(scored[: self.keep])
            outcomes.append(Outcome({"ranked": ranked}, reason=reason, truncated_tokens=sum(missing)))
        return outcomes

    def pairs(self, traces: Sequence[Trace]) -> list[tuple[str, str]]:
        """Return each trace's question with each of its candidates' texts, in order."""
        return [
            (trace.search_query or "", _text(self.index, hit, self.passage))
            for trace in traces
            for hit in trace.candidates
        ]


def blended(hits: Sequence[Hit], scores: Sequence[float], blend: float, step: str) -> list[Hit]:
    """Return the hits with their new scores, kept under the name `step`, by falling score; ties keep their order.

    `blend` above 0 adds the search score of each: both are scaled to [0, 1] over the question's candidates, since a
    log-likelihood and a cosine have no common unit, then summed with that weight.
    """
    totals = list(scores)
    if blend:
        # The better cosine of each hit, by question or by hypothetical document; merged scores where one has none:
        # merging by rank does away with the gaps between cosines.
        cosines = [[hit.scores[name] for name in ("dense", "hyde") if name in hit.scores] for hit in hits]
        others = [max(values) for values in cosines] if all(cosines) else [hit.score for hit in hits]
        pairs = zip(min_max(scores, equal=0.0), min_max(others, equal=0.0), strict=True)
        totals = [score + blend * other for score, other in pairs]
    scored = [
        replace(hit, score=total, scores={**hit.scores, step: score})
        for hit, score, total in zip(hits, scores, totals, strict=True)
    ]
    return sorted(scored, key=lambda hit: -hit.score)


def _text(index: CorpusIndex, hit: Hit, passage: ReadText) -> str:
    return index.chunks.child(hit.chunk_id).text if passage == "child" else index.text(hit)


def _reranked(trace: Trace, index: CorpusIndex, keep: int, passage: ReadText, blend: float) -> Exchange:
    """`(question, passages) -> scores`: a score for each passage, None for one to leave out.

    It is called with the question that is searched. The candidates come back by falling score, the first `keep` of
    them; ties keep the order of the merge.
    """
    if not trace.candidates:
        return Outcome({"ranked": ()}, seconds=0.0)
    texts = [_text(index, hit, passage) for hit in trace.candidates]
    returned = yield trace.search_query or trace.question.text, texts
    if isinstance(returned, str) or (not isinstance(returned, Sequence) and not hasattr(returned, "__array__")):
        raise CustomCodeError(f"the reranker returned {type(returned).__name__} where a score for each passage is due")
    values = list(returned)
    if len(values) != len(trace.candidates):
        raise CustomCodeError(f"the reranker returned {len(values)} scores for {len(trace.candidates)} passages")
    kept = [(hit, score) for hit, score in zip(trace.candidates, values, strict=True) if score is not None]
    scores = numbers([score for _, score in kept], len(kept), "the reranker")
    return Outcome({"ranked": tuple(blended([hit for hit, _ in kept], scores, blend, CUSTOM_SCORE)[:keep])})
