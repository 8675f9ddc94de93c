"""What the stages of the pipeline, and the scores that they give to passages, are called where people read them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rag_lab.records import Hit

STAGES = {
    "remember": "Conversation memory",
    "understand": "Understanding",
    "rewrite": "Rewriting",
    "rephrase": "Other phrasings",
    "route": "HyDE routing",
    "hyde": "HyDE",
    "search_dense": "Dense search",
    "search_bm25": "BM25 search",
    "search_tfidf": "TF-IDF search",
    "retrieve": "Fusion of the searches",
    "retrieve_hyde": "Search by HyDE",
    "merge": "Merging",
    "rerank": "Reranking",
    "select": "Selection",
    "context": "Context",
    "generate": "Generation",
    "parse": "Parsing",
}


class ScoreName(NamedTuple):
    """A score of a hit: what stands above its column, and what it means."""

    short: str
    meaning: str


_SCORES = {
    "dense": ScoreName("cosine", "how alike question and passage are in meaning, 1 at most"),
    "bm25": ScoreName("BM25", "words in common, rare ones count more; no upper limit"),
    "tfidf": ScoreName("TF-IDF", "cosine of weighted word counts, 1 at most"),
    "weighted": ScoreName("fused", "sum of the searches' scaled scores, each times its weight"),
    "hyde": ScoreName("HyDE cosine", "how alike the HyDE text and the passage are in meaning, 1 at most"),
    "rrf": ScoreName("RRF", "sum of 1 / (constant + rank) over the lists that hold it"),
    "cross_encoder": ScoreName("cross-encoder", "how well it answers, as the reranker reads both together"),
    "query_likelihood": ScoreName("log-likelihood", "of the question, given the passage; 0 at most"),
    "mmr": ScoreName("MMR", "relevance less likeness to the passages before it"),
}
ORDERED_BY = ScoreName("sum", "reranker's and retrieval score, each scaled to 0…1, summed by weight")


def stage_name(stage: str) -> str:
    """Return what a stage is called; a search of somebody's own by its name."""
    return STAGES.get(stage) or stage.removeprefix("search_")


def score_name(step: str) -> ScoreName:
    """Return what the score of a step is called and means; nothing is known of one of somebody's own."""
    return _SCORES.get(step) or ScoreName(step, "")


def steps_of(hits: Iterable[Hit]) -> list[str]:
    """Return the steps that scored any of the hits, in the order of the pipeline, those of somebody's own last."""
    found = dict.fromkeys(step for hit in hits for step in hit.scores)
    order = {step: place for place, step in enumerate(_SCORES)}
    return sorted(found, key=lambda step: order.get(step, len(order)))
