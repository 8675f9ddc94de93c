"""Every stage keeps to the contract of stages. A new one is one line in `STAGES`."""

from dataclasses import dataclass, field, fields, replace

import pytest

from rag_lab.config import PipelineConfig
from rag_lab.experiment.forecast.work import stand_ins
from rag_lab.records import QUERY_CLASSES, Question, Trace
from rag_lab.stages.chat_template import ChatTemplate
from rag_lab.stages.context import Assemble, ContextBudget
from rag_lab.stages.extract import Extract
from rag_lab.stages.generate import Generate, Parse
from rag_lab.stages.rerank import KeepOrder, PairRerank
from rag_lab.stages.retrieval.fusion import Combine, Merge
from rag_lab.stages.retrieval.search import DenseSearcher, HydeSearch, SparseSearcher, TextSearch
from rag_lab.stages.retrieval.select import SearchMmr, Select
from rag_lab.stages.rewrite_and_hyde import SUGGESTED, GuardedRewrite, Hyde, PlainWords, RouteHyde
from rag_lab.stages.run_stage import applied, record_of
from rag_lab.stages.stage import BuiltInStage, ChatStage, Off, Outcome
from rag_lab.stages.understand import LlmUnderstanding, Rephrase
from rag_lab.testing import HashEmbedder, OverlapScorer, StageContract, sample_chat, sample_index

RULE = dict.fromkeys(QUERY_CLASSES, True)

STAGES = {
    "off": lambda: Off("rerank"),
    "understand": lambda: LlmUnderstanding(sample_chat()),
    "plain": lambda: PlainWords(),
    "joined": lambda: PlainWords(joined=True),
    "rewrite": lambda: GuardedRewrite(HashEmbedder(), 0.2),
    "any_rewrite": lambda: GuardedRewrite(),
    "follow_ups": lambda: GuardedRewrite(HashEmbedder(), 0.2, only_follow_ups=True),
    "route_suggested": lambda: RouteHyde(SUGGESTED),
    "route_always": lambda: RouteHyde(None),
    "route": lambda: RouteHyde(RULE),
    "hyde": lambda: Hyde(sample_chat(), 32),
    "hyde_several": lambda: Hyde(sample_chat(), 32, n=3),
    "rephrase": lambda: Rephrase(sample_chat(), 2),
    "dense": lambda: TextSearch(DenseSearcher(sample_index(), HashEmbedder()), sample_index(), 3, "dense"),
    "dense_mmr": lambda: TextSearch(
        DenseSearcher(sample_index(), HashEmbedder()),
        sample_index(),
        2,
        "dense",
        mmr=SearchMmr(sample_index(), HashEmbedder(), 3, 0.5),
    ),
    "dense_hyde": lambda: HydeSearch(
        DenseSearcher(sample_index(), HashEmbedder(), by="hypothetical"), sample_index(), 3, "hyde"
    ),
    "mean_hyde": lambda: HydeSearch(
        DenseSearcher(sample_index(), HashEmbedder(), by="hypothetical"),
        sample_index(),
        3,
        "hyde",
        None,
        None,
        True,
        True,
    ),
    "bm25": lambda: TextSearch(SparseSearcher(sample_index(), "bm25", "unicode"), sample_index(), 3, "bm25"),
    "tfidf_files": lambda: TextSearch(
        SparseSearcher(sample_index(), "tfidf", "english", units="document"), sample_index(), 3, "tfidf"
    ),
    "tfidf": lambda: TextSearch(SparseSearcher(sample_index(), "tfidf", "english"), sample_index(), 3, "tfidf"),
    "combine": lambda: Combine({"dense": 0.7, "bm25": 0.3, "tfidf": 0.1}, "z_score", 60, 3),
    "select": lambda: Select(sample_index(), HashEmbedder(), "knee", 0.5, 2),
    "merge": lambda: Merge(3),
    "base_first": lambda: Merge(3, "base_first"),
    "keep": lambda: KeepOrder(2),
    "pairs": lambda: PairRerank("cross_encoder", OverlapScorer(), sample_index(), 2, "child"),
    "joint": lambda: PairRerank("query_likelihood", OverlapScorer(), sample_index(), 2, "parent", blend=1.0),
    "context": lambda: Assemble(sample_index(), ContextBudget(sample_chat(), 200), 2),
    "generate": lambda: Generate(sample_chat(), 32, 0.0),
    "parse": lambda: Parse(),
    "extract": lambda: Extract(HashEmbedder(), 3, 0.5, 0.1),
}


class TestStages(StageContract):
    @pytest.fixture(autouse=True, params=STAGES.values(), ids=STAGES)
    def _each(self, request):
        self.make = request.param

    def test_every_parameter_can_change_what_is_remembered(self):
        stage = self.make()
        parameters = {field.name for field in fields(stage)}
        assert parameters - {"prompt"} <= stage.identity().keys()
        assert ("prompts" in stage.identity()) == ("prompt" in parameters)

    def test_what_it_waits_for_is_foreseen_as_a_call(self):
        stage = self.make()
        bare = Trace(Question("q", "Why?"))
        outcome = Outcome(stand_ins(bare, stage.reads, PipelineConfig()))
        guessed = applied(bare, outcome, record_of(stage, outcome, remembered=False))
        if isinstance(stage, ChatStage):
            assert len(stage.requests([guessed])) >= 1
        if isinstance(stage, PairRerank):
            assert len(guessed.candidates) == PipelineConfig().rerank.input_limit


class Model:
    def identity(self):
        return {"name": "m"}


@dataclass(frozen=True)
class Weights:
    bm25: float = 1.0


@dataclass(frozen=True)
class Asking(BuiltInStage):
    model: Model
    weights: Weights = Weights()
    prompt: ChatTemplate | None = None
    cache: list[int] = field(default_factory=list, compare=False)

    PROMPTS = 7
    VERSION = 2
    name = "ask"


class AskingTwice(Asking):
    WORDS = 3


def test_an_identity_is_the_class_its_versions_and_every_field_that_can_change_a_result():
    stage = Asking(Model())
    found = {"stage": "Asking", "version": 2, "model": {"name": "m"}, "weights": {"bm25": 1.0}, "prompts": 7}
    assert stage.identity() == found
    assert AskingTwice(Model()).identity() == found | {"stage": "AskingTwice", "words": 3}
    assert replace(stage, cache=[1]).identity() == found
    assert replace(stage, weights=Weights(0.5)).identity() == found | {"weights": {"bm25": 0.5}}


def test_a_prompt_stands_in_place_of_the_version_of_what_is_built_in():
    prompt = ChatTemplate("mine", "{{ question }}")
    assert Asking(Model(), prompt=prompt).identity()["prompts"] == prompt.digest
