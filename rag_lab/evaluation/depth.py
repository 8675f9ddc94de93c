"""How deep a ranking can be: the smallest of the limits that hits pass on their way into it."""

from __future__ import annotations

from rag_lab.config import PipelineConfig


def ranking_depth(config: PipelineConfig) -> tuple[int, str]:
    """Return how many hits the final ranking of a question holds at most, and the setting that decides it."""
    retrieval, rerank = config.retrieval, config.rerank
    found, setting = retrieval.base_k, "retrieval.base_k"
    if config.query.hyde != "none":
        found, setting = found + retrieval.hyde_k, f"{setting} + retrieval.hyde_k"
    return min((2 * rerank.final_k, "2 x rerank.final_k"), (rerank.input_limit, "rerank.input_limit"), (found, setting))
