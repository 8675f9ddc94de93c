"""Whether a reranking server answers on this machine, at the address where it listens unless told otherwise."""

from __future__ import annotations

from rag_lab.models.remote.rerank.documents import VllmScorer
from rag_lab.models.remote.rerank.remote_scorer import RemoteScorer
from rag_lab.models.remote.rerank.tei import TeiScorer

_CHECK_S = 2.0


def tei_problem() -> str:
    """Return why no TEI server can be asked here, and what to write for another; '' where one answers."""
    return _problem(TeiScorer("MODEL"))


def vllm_problem() -> str:
    """Return why no vLLM server can be asked here; see `tei_problem`."""
    return _problem(VllmScorer("MODEL"))


def _problem(scorer: RemoteScorer) -> str:
    if not scorer.problem(_CHECK_S):
        return ""
    return f"Nothing answers at {scorer.base_url}; a server elsewhere is {scorer.provider}:MODEL?base_url=ADDRESS."
