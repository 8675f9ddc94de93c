"""The contracts of what stands at one place of the pipeline, from the understanding of a question to its answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from rag_lab.config import PipelineConfig
from rag_lab.pipeline import Pipeline
from rag_lab.records import QUERY_CLASSES, Hit, Trace
from rag_lab.stages.custom import CheckedStage, CustomStage
from rag_lab.stages.retrieval.custom_search import CustomSearch
from rag_lab.stages.stage import Stage
from rag_lab.testing.contracts.stage import StageContract
from rag_lab.testing.models import HashEmbedder
from rag_lab.testing.sample_traces import QUESTIONS, sample_index, sample_trace

# Another mode than the place that is tested needs; a model that counts without loading anything.
_CONFIG = PipelineConfig().override({"query.hyde": "always", "models.generation": "openai:sample"})


class PlacedContract(StageContract):
    """What `make` returns is a function, an instance that is called like one, or a whole stage."""

    slot: ClassVar[str]  # of `Pipeline.replace`

    def stage(self) -> Stage:
        """Return the module as the pipeline runs it."""
        pipeline = Pipeline.on(sample_index(), HashEmbedder(), _CONFIG)
        pipeline.parts = replace(pipeline.parts, given={self.slot: self.make()})
        return next(each for each in pipeline.stages if isinstance(each, CustomStage | CheckedStage | CustomSearch))

    def results(self) -> list[tuple[Trace, Any]]:
        """Return sample traces, each with what the first field that is written is set to."""
        traces = [sample_trace(text) for text in QUESTIONS]
        stage = self.stage()
        return [
            (trace, outcome.updates.get(stage.writes[0]))
            for trace, outcome in zip(traces, stage.run(traces), strict=True)
        ]


class UnderstandingContract(PlacedContract):
    """An understanding: `(question) -> {"class", "rewrite", "hyde"}`."""

    slot = "understand"

    def test_a_class_is_one_of_ours_or_none(self) -> None:
        assert {found for _, found in self.results()} <= {*QUERY_CLASSES, None}


class RewritingContract(PlacedContract):
    """A rewriting: `(question) -> str`."""

    slot = "rewrite"

    def test_something_is_left_to_search(self) -> None:
        assert all(found and found.strip() for _, found in self.results())


class HydeContract(PlacedContract):
    """A writer of hypothetical documents: `(question, query_class) -> str`; the class is None where none is known."""

    slot = "hyde"

    def test_there_is_a_document(self) -> None:
        assert all(found and found.strip() for _, found in self.results())


class SearchContract(PlacedContract):
    """A search: `(query, k) -> ids or texts`, or pairs of one with a score; of documents it knows, as the sample's."""

    slot = "search"

    def test_each_unit_is_found_once_best_first(self) -> None:
        for _, found in self.results():
            assert _is_ranking(found)
            assert all(sample_index().text(hit).strip() for hit in found)


class FusionContract(PlacedContract):
    """A fusion: `(lists, k) -> [(id, score)]`, `lists` being `{search: [(id, score)]}`."""

    slot = "fusion"

    def test_it_orders_what_the_searches_found(self) -> None:
        for trace, found in self.results():
            assert _is_ranking(found)
            assert _ids(found) <= {name for hits in trace.hits.values() for name in _ids(hits)}


class RerankerContract(PlacedContract):
    """A reranker: `(question, passages) -> scores`, None for a passage to leave out."""

    slot = "rerank"

    def test_it_orders_what_it_was_given_by_falling_score(self) -> None:
        for trace, found in self.results():
            assert _is_ranking(found)
            assert _ids(found) <= _ids(trace.candidates)


class SelectionContract(PlacedContract):
    """A selection: `(question, passages, scores) -> positions` that are kept, in the order in which they are read."""

    slot = "select"

    def test_it_keeps_some_of_what_it_was_given(self) -> None:
        for trace, found in self.results():
            assert _is_ranking(found)
            assert _ids(found) <= _ids(trace.ranked)


class ContextContract(PlacedContract):
    """A context: `(question, passages) -> texts`, None for a passage to leave out."""

    slot = "context"

    def test_passages_are_numbered_from_1_and_say_where_they_are_from(self) -> None:
        for trace, found in self.results():
            assert [passage.number for passage in found] == list(range(1, len(found) + 1))
            assert {passage.parent_id for passage in found} <= _ids(trace.ranked)
            assert all(passage.text.strip() for passage in found)


class ReaderContract(PlacedContract):
    """A reader: `(question, passages) -> str or Answer`."""

    slot = "reader"

    def test_there_is_an_answer_that_cites_what_it_read(self) -> None:
        for trace, found in self.results():
            assert found.text.strip()
            assert {citation.number for citation in found.citations} <= {passage.number for passage in trace.passages}


def _ids(hits: Iterable[Hit]) -> set[str]:
    return {hit.parent_id for hit in hits}


def _is_ranking(hits: Sequence[Hit]) -> bool:
    scores = [hit.score for hit in hits]
    return scores == sorted(scores, reverse=True) and len(_ids(hits)) == len(hits)
