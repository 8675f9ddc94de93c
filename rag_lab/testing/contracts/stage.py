"""The contracts of stages: one for all, and one for each kind."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, ClassVar

from rag_lab.config import PipelineConfig
from rag_lab.memory.results import Memory
from rag_lab.pipeline import Pipeline
from rag_lab.records import QUERY_CLASSES, Hit, Passage, Question, StageRecord, Trace
from rag_lab.stages.retrieval.retrieval_stages import CustomSearch
from rag_lab.stages.run_stage import run_stage, stage_key
from rag_lab.stages.stage import CheckedStage, CustomStage, Outcome, Stage
from rag_lab.testing.contracts.module import ModuleContract
from rag_lab.testing.doubles import QUESTIONS, WITHHELD, HashEmbedder, ScriptedChat, sample_index, sample_trace

_LABELS = ("answers", "answerable", "query_class", "evidence", "tags", "not_relevant")  # only the dataset knows them
# Another mode than the place that is tested needs; a model that counts without loading anything.
_CONFIG = PipelineConfig().override({"query.hyde": "always", "models.generation": "openai:sample"})


class StageContract(ModuleContract):
    """Whatever stands in a pipeline: `make` returns a stage."""

    def test_it_names_trace_fields_and_none_that_only_the_dataset_knows(self) -> None:
        stage = self.built()
        known = {field.name for field in fields(Trace)} - {"stages", "question", "texts"}
        asked = {f"question.{field.name}" for field in fields(Question)} - {f"question.{name}" for name in _LABELS}
        assert {path if path in asked else path.partition(".")[0] for path in stage.reads} <= known | asked
        assert {path.partition(".")[0] for path in stage.writes} <= known
        assert stage.batch_size >= 1

    def test_one_outcome_a_trace_in_order_the_same_again_of_what_it_declares(self) -> None:
        together = self.built().run(list(map(sample_trace, QUESTIONS)))
        alone = [self.built().run([sample_trace(text)])[0] for text in reversed(QUESTIONS)]
        assert len(together) == len(QUESTIONS)
        assert [outcome.status for outcome in together].count("failed") == 0, [each.reason for each in together]
        assert [outcome.updates for outcome in together] == [outcome.updates for outcome in alone[::-1]]
        for outcome in together:
            assert set(outcome.updates) <= set(self.built().writes)
            assert all(math.isfinite(item.score) for item in _items(outcome) if isinstance(item, Hit))

    def test_what_it_writes_can_be_remembered(self, tmp_path: Path) -> None:
        traces, memory = [sample_trace(text) for text in QUESTIONS], Memory(tmp_path / "stages.sqlite")
        first, again = (run_stage(self.built(), traces, memory) for _ in range(2))
        assert [replace(trace, stages=()) for trace in first] == [replace(trace, stages=()) for trace in again]

    def test_what_it_does_not_read_does_not_matter_and_its_trace_stays(self) -> None:
        trace = sample_trace()
        asked = replace(trace.question, answers=("x",), evidence=(), query_class="creative", tags=("t",))
        other = replace(trace, question=asked, stages=(StageRecord("before"),))
        assert stage_key(self.built(), "i", trace) == stage_key(self.built(), "i", other)
        assert self.built().run([trace])[0].updates == self.built().run([other])[0].updates
        assert trace == sample_trace()  # which it does not change

    def test_nobody_is_shown_what_they_may_not_see(self) -> None:
        (outcome,) = self.built().run([sample_trace(QUESTIONS[0], may_see=())])
        shown = [item.source for item in _items(outcome) if isinstance(item, Hit | Passage)]
        assert WITHHELD not in shown

    def test_it_tells_what_it_would_ask_a_chat_model(self) -> None:
        stage = self.built()
        models = [model for model in getattr(stage, "__dict__", {}).values() if isinstance(model, ScriptedChat)]
        traces = [sample_trace(), sample_trace(QUESTIONS[1], hyde_route=None)]
        requests = getattr(stage, "requests", None)  # of a stage that asks a chat model, also of a custom one
        foretold = requests(traces) if requests else []
        assert all(model.requests == [] for model in models)
        stage.run(traces)
        assert [request for model in models for request in model.requests] == list(foretold)

    def test_an_empty_trace_is_no_exception_and_no_traces_are_no_work(self) -> None:
        (outcome,) = self.built().run([Trace(Question("q", QUESTIONS[0]))])
        assert outcome.status == "ok" or outcome.reason
        assert run_stage(self.built(), []) == []


def _items(outcome: Outcome) -> Iterator[Any]:
    for value in outcome.updates.values():
        yield from value if isinstance(value, tuple) else ()


class PlacedContract(StageContract):
    """What `make` returns is a function, an instance that is called like one, or a whole stage."""

    slot: ClassVar[str]  # of `Pipeline.replace`
    among: ClassVar[str] = ""  # the field of the trace whose hits it orders

    def built(self) -> Stage:
        """Return the module as the pipeline runs it."""
        pipeline = Pipeline.on(sample_index(), HashEmbedder(), _CONFIG)
        pipeline.parts = replace(pipeline.parts, overrides={self.slot: self.make()})
        return next(each for each in pipeline.stages if isinstance(each, CustomStage | CheckedStage | CustomSearch))

    def test_what_it_writes_is_what_its_place_needs(self) -> None:
        """Of each sample trace what the first field that is written is set to."""
        stage, traces = self.built(), [sample_trace(text) for text in QUESTIONS]
        for trace, outcome in zip(traces, stage.run(traces), strict=True):
            self.check(trace, outcome.updates.get(stage.writes[0]))

    def check(self, trace: Trace, found: Any) -> None:
        """Assert that `found`, written on `trace`, is what the stages behind it need: a text, or an order of hits."""
        if self.among:
            hits = getattr(trace, self.among)
            every = [hit for one in hits.values() for hit in one] if isinstance(hits, dict) else hits
            assert _is_ranking(found, among=every)
        else:
            assert found and found.strip()


class UnderstandingContract(PlacedContract):
    """An understanding: `(question) -> {"class", "rewrite", "hyde"}`."""

    slot = "understand"

    def check(self, trace: Trace, found: Any) -> None:
        assert found in {*QUERY_CLASSES, None}


class RewritingContract(PlacedContract):
    """A rewriting: `(question, history) -> str`, of texts that are remembered of the conversation."""

    slot = "rewrite"


class HydeContract(PlacedContract):
    """A writer of hypothetical documents: `(question, query_class) -> str`; the class is None where none is known."""

    slot = "hyde"


class SearchContract(PlacedContract):
    """A search: `(query, k) -> ids or texts`, or pairs of one with a score; of documents it knows, as the sample's."""

    slot = "search"

    def check(self, trace: Trace, found: Any) -> None:
        assert _is_ranking(found)
        assert all(sample_index().text(hit).strip() for hit in found)


class FusionContract(PlacedContract):
    """A fusion: `(lists, k) -> [(id, score)]`, `lists` being `{search: [(id, score)]}`."""

    slot, among = "fusion", "hits"


class RerankerContract(PlacedContract):
    """A reranker: `(question, passages) -> scores`, None for a passage to leave out."""

    slot, among = "rerank", "candidates"


class SelectionContract(PlacedContract):
    """A selection: `(question, passages, scores) -> positions` that are kept, in the order in which they are read."""

    slot, among = "select", "ranked"


class ContextContract(PlacedContract):
    """A context: `(question, passages) -> texts`, None for a passage to leave out."""

    slot = "context"

    def check(self, trace: Trace, found: Any) -> None:
        assert [passage.number for passage in found] == list(range(1, len(found) + 1))
        assert {passage.parent_id for passage in found} <= {hit.parent_id for hit in trace.ranked}
        assert all(passage.text.strip() for passage in found)


class ReaderContract(PlacedContract):
    """A reader: `(question, passages) -> str or Answer`."""

    slot = "reader"

    def check(self, trace: Trace, found: Any) -> None:
        assert found.text.strip()
        assert {citation.number for citation in found.citations} <= {passage.number for passage in trace.passages}


def _is_ranking(hits: Sequence[Hit], among: Sequence[Hit] | None = None) -> bool:
    """Tell whether each unit stands there once, best first, and no other than those `among` which it was to choose."""
    scores, ids = [hit.score for hit in hits], {hit.parent_id for hit in hits}
    is_new = among is not None and not ids <= {hit.parent_id for hit in among}
    return scores == sorted(scores, reverse=True) and len(ids) == len(hits) and not is_new
