"""The rules of a stage, checked over every stage. A new stage is one line in `STAGES`."""

import json
from dataclasses import fields, replace

import pytest
from doubles import Corpus, hits

from rag_lab.config import PipelineConfig
from rag_lab.experiment.forecast.stand_ins import stand_ins
from rag_lab.records import QUERY_CLASSES, Passage, Question, StageRecord, Trace
from rag_lab.stages.answer.context import Assemble
from rag_lab.stages.answer.generate import Generate
from rag_lab.stages.answer.parse import Parse
from rag_lab.stages.chat_stage import ChatStage
from rag_lab.stages.query.hyde import Hyde
from rag_lab.stages.query.rephrase import Rephrase
from rag_lab.stages.query.rewrite import GuardedRewrite, OwnWords
from rag_lab.stages.query.route import RouteHyde
from rag_lab.stages.query.understand import LlmUnderstanding
from rag_lab.stages.rerank.keep_order import KeepOrder
from rag_lab.stages.rerank.pair_rerank import PairRerank
from rag_lab.stages.retrieval.combine import Combine
from rag_lab.stages.retrieval.merge import Merge
from rag_lab.stages.retrieval.search import Search
from rag_lab.stages.retrieval.searcher import DenseSearcher, SparseSearcher
from rag_lab.stages.retrieval.select import Select
from rag_lab.stages.run_stage import apply_outcome, run_stage, stage_key
from rag_lab.stages.stage import Outcome
from rag_lab.stages.switched_off import Off
from rag_lab.testing import HashEmbedder, OverlapScorer, ScriptedChat

REPLY = json.dumps(
    {"class": "fuzzy", "rewritten": "oven trips", "hyde": True, "answer": "A7", "citations": [1], "phrasings": ["a"]}
)
RULE = dict.fromkeys(QUERY_CLASSES, True)


def chat():
    return ScriptedChat(lambda request: REPLY)


STAGES = {
    "off": lambda: Off("rerank"),
    "understand": lambda: LlmUnderstanding(chat()),
    "own_words": lambda: OwnWords(),
    "rewrite": lambda: GuardedRewrite(HashEmbedder(), 0.2),
    "route_always": lambda: RouteHyde(None),
    "route": lambda: RouteHyde(RULE),
    "hyde": lambda: Hyde(chat(), 32),
    "rephrase": lambda: Rephrase(chat(), 2),
    "dense": lambda: Search(DenseSearcher(Corpus(), HashEmbedder()), Corpus(), 3, "dense"),
    "dense_hyde": lambda: Search(DenseSearcher(Corpus(), HashEmbedder(), by="hypothetical"), Corpus(), 3, "hyde"),
    "bm25": lambda: Search(SparseSearcher(Corpus(), "bm25", "unicode"), Corpus(), 3, "bm25"),
    "tfidf": lambda: Search(SparseSearcher(Corpus(), "tfidf", "english"), Corpus(), 3, "tfidf"),
    "combine": lambda: Combine({"dense": 0.7, "bm25": 0.3, "tfidf": 0.1}, "z_score", 60, 3),
    "select": lambda: Select(Corpus(), HashEmbedder(), "knee", "mmr", 0.5, 2),
    "merge": lambda: Merge(3),
    "keep": lambda: KeepOrder(2),
    "pairs": lambda: PairRerank("cross_encoder", OverlapScorer(), Corpus(), 2, "child"),
    "joint": lambda: PairRerank("query_likelihood", OverlapScorer(), Corpus(), 2, "parent", retrieval_weight=1.0),
    "context": lambda: Assemble(Corpus(), chat(), 2, 200),
    "generate": lambda: Generate(chat(), 32, 0.0),
    "parse": lambda: Parse(),
}


def full_trace(text="Why does the oven trip?", **changes):
    """A trace with every field filled, so that any stage can run on it."""
    found = tuple(hits("oven#p2", "press#p1", "oven#p1"))
    passage = Passage(1, "oven#p1", "oven.pdf", 1, 0, 20, "The oven cures at 180")
    filled = Trace(
        Question(text, text),
        query_class="fuzzy",
        proposed_query="oven trips",
        hyde_suggested=False,
        search_query=text,
        hyde_route="fuzzy",
        hypothetical="The oven trips when its burner is locked out.",
        phrasings=("oven stops", "cause of the oven's trip"),
        hits={"dense": found, "bm25": found[1:], "tfidf": found[:2], "hyde": found[:1]},
        base_hits=found,
        candidates=found,
        ranked=found,
        passages=(passage,),
        raw_text=REPLY,
    )
    return replace(filled, **changes)


@pytest.fixture(params=STAGES.values(), ids=STAGES)
def make(request):
    return request.param


def test_it_names_trace_fields_only(make):
    stage = make()
    names = {field.name for field in fields(Trace)} - {"stages", "hits"} | {
        f"hits.{name}" for name in full_trace().hits
    }
    question = {f"question.{field.name}" for field in fields(Question)}
    assert set(stage.reads) <= names | question
    assert set(stage.writes) <= names
    assert stage.batch_size >= 1


def test_it_never_reads_what_only_the_dataset_knows(make):
    labels = {"question.answers", "question.answerable", "question.query_class", "question.evidence", "question.tags"}
    assert not labels & set(make().reads)
    assert "question" not in make().reads


def test_its_identity_is_json_and_the_same_each_time(make):
    assert json.loads(json.dumps(make().identity())) == dict(make().identity())
    assert make().identity() == make().identity()


def test_one_outcome_a_trace_in_order_that_writes_what_it_may(make):
    stage = make()
    texts = ["Why does the oven trip?", "What is A7?", "What grease?"]
    outcomes = stage.run([full_trace(text) for text in texts])
    assert len(outcomes) == len(texts)
    assert all(set(outcome.updates) <= set(stage.writes) for outcome in outcomes)
    for text, outcome in zip(texts, outcomes, strict=True):
        assert make().run([full_trace(text)])[0].updates == outcome.updates


def test_what_it_does_not_read_does_not_matter(make):
    stage = make()
    trace = full_trace()
    relabelled = replace(
        trace,
        question=replace(trace.question, answers=("x",), query_class="creative", tags=("t",)),
        stages=(StageRecord("before"),),
    )
    assert stage_key(stage, "i", trace) == stage_key(stage, "i", relabelled)
    assert stage.run([trace])[0].updates == stage.run([relabelled])[0].updates


def test_it_tells_what_it_would_ask_a_chat_model(make):
    stage = make()
    models = [model for model in vars(stage).values() if isinstance(model, ScriptedChat)]
    traces = [full_trace(), full_trace("What is A7?", hyde_route=None)]
    foretold = stage.requests(traces) if isinstance(stage, ChatStage) else []
    assert all(model.requests == [] for model in models)
    stage.run(traces)
    assert [request for model in models for request in model.requests] == foretold


def test_what_it_waits_for_is_foreseen_as_a_call(make):
    stage = make()
    bare = Trace(Question("q", "Why?"))
    guessed = apply_outcome(stage, bare, Outcome(stand_ins(bare, stage.reads, PipelineConfig())), remembered=False)
    if isinstance(stage, ChatStage):
        assert len(stage.requests([guessed])) >= 1
    if isinstance(stage, PairRerank):
        assert len(guessed.candidates) == PipelineConfig().rerank.input_limit


def test_it_does_not_change_the_trace_it_is_given(make):
    trace = full_trace()
    make().run([trace])
    assert trace == full_trace()


def test_an_empty_trace_is_no_exception(make):
    stage = make()
    (outcome,) = stage.run([Trace(Question("q", "Why does the oven trip?"))])
    assert outcome.status in ("ok", "fallback", "failed")


def test_no_traces_are_no_work(make):
    assert run_stage(make(), []) == []
