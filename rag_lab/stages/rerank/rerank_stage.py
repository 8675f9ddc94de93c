"""The reranker that a configuration asks for."""

from __future__ import annotations

from rag_lab.stages.choose import stage_of
from rag_lab.stages.kinds import RERANKERS
from rag_lab.stages.parts import Parts
from rag_lab.stages.rerank.keep_order import n_kept
from rag_lab.stages.rerank.own_reranker import RerankPlace
from rag_lab.stages.stage import Stage


def rerank_stage(parts: Parts) -> Stage:
    """Return what reranks the candidates."""
    rerank = parts.rerank

    def place() -> RerankPlace:
        return RerankPlace(parts.index, n_kept(parts), rerank.passage)

    return stage_of(RERANKERS, "rerank", rerank.name, parts, place)
