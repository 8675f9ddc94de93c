"""The contract of what orders the candidates."""

from __future__ import annotations

from typing import ClassVar

from rag_lab._kit.registry import Kind
from rag_lab.stages.own_stage import Place
from rag_lab.stages.rerank.own_reranker import RerankPlace
from rag_lab.stages.rerank.rerankers import RERANKERS
from rag_lab.testing.contracts.stage import PlacedContract
from rag_lab.testing.sample_traces import QUESTIONS, sample_index, sample_trace


class RerankerContract(PlacedContract):
    """A reranker: `(question, passages) -> scores`."""

    kind: ClassVar[Kind] = RERANKERS

    def place(self) -> Place:
        """Return the place between the merge and the selection."""
        return RerankPlace(sample_index(), 10, "child")

    def test_it_orders_what_it_was_given_by_falling_score(self) -> None:
        for text in QUESTIONS:
            trace = sample_trace(text)
            ranked = self._run(trace)[0].updates["ranked"]
            given = {hit.chunk_id for hit in trace.candidates}
            assert len({hit.chunk_id for hit in ranked} & given) == len(ranked)
            assert [hit.score for hit in ranked] == sorted((hit.score for hit in ranked), reverse=True)
