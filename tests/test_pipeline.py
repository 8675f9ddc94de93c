"""The pipeline as a value, on a real corpus: what `set` and `replace` change, and what somebody's code may cost."""

import math
import time
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.vectorstores import InMemoryVectorStore
from loopback_models import openai_server
from small_dataset import write_dataset

from rag_lab import Pipeline, evaluate
from rag_lab._kit.home import home, working_at
from rag_lab._kit.registry import modules_from
from rag_lab.errors import ConfigError
from rag_lab.experiment.design import ExperimentError
from rag_lab.experiment.plan import plan
from rag_lab.models.local.local_model import keep_converted
from rag_lab.stages.retrieval import search
from rag_lab.stages.stage import Outcome
from rag_lab.testing import HashEmbedder

LEXICAL = {"retrieval.mode": "bm25", "query.rewrite": "none", "query.hyde": "none", "answer.name": "none"}


@pytest.fixture
def base(tmp_path):
    return Pipeline(write_dataset(tmp_path / "data"), home=tmp_path / "home").set(LEXICAL)


@dataclass(frozen=True)
class Shortest:
    """Prefer short passages."""

    keep: int = 4
    version: ClassVar[int] = 1

    def __call__(self, question, passages):
        best = sorted(range(len(passages)), key=lambda place: len(passages[place]))[: self.keep]
        return [-len(text) if place in best else None for place, text in enumerate(passages)]


def ranked(pipeline):
    return [[hit.chunk_id for hit in trace.ranked] for trace in pipeline.run()]


def test_a_pipeline_is_a_value(base):
    other = base.set("rerank.final_k", 1)
    assert (base.config.rerank.final_k, other.config.rerank.final_k) == (5, 1)
    assert other.index is base.index  # what is read and split alike is open once
    assert base.set("corpus.chunk_size", 200).index is not base.index
    with pytest.raises(ConfigError, match=r"Unknown parameter 'rerank.nmae'.*did you mean 'rerank.name'"):
        base.set("rerank.nmae", "none")
    with pytest.raises(ConfigError, match=r"Unknown place of a pipeline 'reranker'.*did you mean 'rerank'"):
        base.replace(reranker=Shortest())
    with pytest.raises(ConfigError, match="given as an object here, got 'none'"):
        base.replace(rerank="none").run()


def test_a_quick_search_is_remembered_only_where_something_costly_reads_it(base, monkeypatch):
    def rooms(**read):
        found = base.run(**read)
        return found, base.memory.counts()

    alone, counts = rooms(read=lambda question: ("ranked",), answer=())
    assert "search_bm25" not in counts  # its ranks are all that is read
    with monkeypatch.context() as patch:
        patch.setattr(search, "_QUICK_CHILDREN", 0)
        among_many, counts = rooms(read=lambda question: ("ranked",), answer=())
    assert counts["search_bm25"] == len(among_many)
    assert [trace.ranked for trace in among_many] == [trace.ranked for trace in alone]
    base.memory.path.unlink()
    _, counts = rooms()  # the context is made of it
    assert counts["search_bm25"] == counts["context"] == len(alone)


def test_models_keep_the_paces_of_servers_and_converted_weights_in_the_home_of_the_pipeline(tmp_path):
    with openai_server(lambda _: '{"answer": "290 bar."}') as server:
        reader = f"openai:tiny?base_url={server.url}&requests_per_minute=9000"
        answers = {**LEXICAL, "answer.name": "llm", "models.generation": reader}
        mine = Pipeline(write_dataset(tmp_path / "data"), home=tmp_path / "mine", progress=False).set(answers)
        assert {trace.answer.text for trace in mine.run()} == {"290 bar."}  # asked in threads
    assert (tmp_path / "mine" / "paces.sqlite").is_file() and not (home() / "paces.sqlite").exists()
    with working_at(mine.home):  # as a stage works
        assert keep_converted("x", lambda partial: partial.touch()) == tmp_path / "mine" / "weights" / "x"


def test_a_function_and_a_class_rerank(base):
    lengths = {hit.chunk_id: hit.end - hit.start for trace in base.run() for hit in trace.candidates}
    for mine in (Shortest(keep=2), lambda question, passages: [-len(text) for text in passages]):
        for trace in base.replace(rerank=mine).run():
            found = [lengths[hit.chunk_id] for hit in trace.ranked]
            assert found == sorted(found)
            assert len(found) <= (2 if isinstance(mine, Shortest) else len(trace.candidates))
            assert all(hit.scores["own"] == hit.score for hit in trace.ranked)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda question, passages: 1 / 0, "raised ZeroDivisionError: division by zero"),
        (lambda question, passages: [1.0], "returned 1 scores for"),
        (lambda question, passages: [math.nan for _ in passages], "returned nan, which is no number"),
        (lambda question, passages: "high", "returned str where a score for each passage is due"),
        (lambda question, passages: 7, "returned int where a score for each passage is due"),
        (lambda question, passages: ["a" for _ in passages], "numbers are due"),
    ],
)
def test_a_reranker_that_is_wrong_costs_the_questions_that_it_was_asked(base, wrong, said):
    asked = base.dataset.questions[0].text

    def sometimes(question, passages):
        return wrong(question, passages) if question == asked else [0.0 for _ in passages]

    first, *others = base.replace(rerank=sometimes).run()
    assert said in first.failure.reason
    assert first.curable
    assert others and all(trace.failure is None and trace.ranked for trace in others)


def test_a_reranker_that_hangs_is_given_up(base):
    def slow(question, passages):
        if question == base.dataset.questions[0].text:
            time.sleep(5)
        return [0.0 for _ in passages]

    slow.timeout_s = 0.2
    first, *others = base.replace(rerank=slow).run()
    assert "did not return within 0.2 s" in first.failure.reason
    assert all(trace.failure is None for trace in others)


def test_a_second_run_that_differs_is_told_before_the_others(base):
    calls = []

    def dice(question, passages):
        calls.append(question)
        return [len(calls) for _ in passages]

    with pytest.raises(ConfigError, match="says that it is deterministic, and its second run differs"):
        base.replace(rerank=dice).run()
    assert len(calls) == 2
    dice.deterministic = False
    assert all(trace.ranked for trace in base.replace(rerank=dice).run())


def test_files_that_a_module_does_not_name_are_told(base, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some.dist-info").mkdir()  # where libraries look up entry points as they are first imported
    for name in ("weights.txt", "some.dist-info/entry_points.txt"):
        (tmp_path / name).write_text("1")

    def heavy(question, passages, name="weights.txt"):
        from pathlib import Path

        return [float(Path(name).read_text()) for _ in passages]

    base.replace(rerank=lambda question, passages: heavy(question, passages, "some.dist-info/entry_points.txt")).run()
    with pytest.raises(
        ConfigError, match=r"reads .*weights\.txt, which it does not name.*add `files = \('weights.txt',\)`"
    ):
        base.replace(rerank=heavy).run()


def test_results_are_remembered_until_the_source_changes(base, tmp_path):
    source = "def mine(question, passages):\n    return [SIGN * len(text) for text in passages]\n"
    results = []
    for sign in ("1", "-1", "1"):
        (tmp_path / "mine.py").write_text(source.replace("SIGN", sign))
        with modules_from(tmp_path):
            pipeline = base.set("rerank.name", "mine:mine")
            results.append(ranked(pipeline))
            assert ranked(pipeline) == results[-1]
            (record,) = [record for record in pipeline.run()[0].stages if record.stage == "rerank"]
            assert record.remembered
    assert results[0] == results[2] != results[1]


@dataclass(frozen=True)
class Whole:
    """A whole stage, wrong in one respect."""

    fault: str = ""

    name: ClassVar[str] = "rerank"
    reads: ClassVar[tuple[str, ...]] = ("candidates",)
    writes: ClassVar[tuple[str, ...]] = ("ranked",)
    batch_size: ClassVar[int] = 100
    costly: ClassVar[bool] = False

    def identity(self):
        return {"version": 1, "fault": self.fault}

    def run(self, traces):
        if self.fault == "short":
            return [Outcome({"ranked": ()}) for _ in traces[1:]]
        if self.fault == "type":
            return [{"ranked": ()} for _ in traces]
        if self.fault == "undeclared":
            return [Outcome({"answer": None}) for _ in traces]
        if self.fault == "value":
            return [Outcome({"ranked": ("first",)}) for _ in traces]
        return [Outcome({"ranked": trace.candidates[::-1]}) for trace in traces]


def test_a_whole_stage_stands_in_its_place(base):
    for trace in base.replace(rerank=Whole()).run():
        assert trace.ranked == trace.candidates[::-1]


@pytest.mark.parametrize(
    ("fault", "said"), [("short", "returned 0 outcomes for 1 questions"), ("type", "returned dict where an Outcome"),
                        ("value", "set ranked to what it cannot be")]
)  # fmt: skip
def test_a_whole_stage_is_held_to_its_contract(base, fault, said):
    assert all(said in trace.failure.reason for trace in base.replace(rerank=Whole(fault)).run())


def test_a_field_that_a_stage_does_not_declare_is_a_mistake_of_its_author(base):
    with pytest.raises(ConfigError, match="writes answer, which its `writes` do not name"):
        base.replace(rerank=Whole("undeclared")).run()


def test_documents_in_memory_and_plain_questions_are_enough(tmp_path):
    documents = [
        LangChainDocument(page_content=text, metadata={"source": name})
        for name, text in {"press": "The press runs at 140 bar.", "oven": "The oven cures at 180 degrees."}.items()
    ]
    pipeline = Pipeline(documents, questions=["How hot is the oven?"], home=tmp_path / "home").set(LEXICAL)
    (trace,) = pipeline.run()
    assert trace.ranked[0].source == "oven"
    (score,) = evaluate([trace], ["retrieval.ndcg@10"])
    assert (score.status, score.reason) == ("not_applicable", "the question has no evidence")


def test_a_module_that_a_sweep_cannot_use_is_told_by_its_plan(tmp_path):
    write_dataset(tmp_path / "data")
    (tmp_path / "broken.py").write_text("import no_such_package")
    (tmp_path / "e.yaml").write_text(
        f"name: e\nquestion: Does it help?\ndataset: {tmp_path / 'data'}\nmetrics: [retrieval.ndcg@10]\n"
        "base: {answer: {name: none}}\nfactors: {rerank.name: [none, 'broken:Mine', 'missing:Mine']}\n"
    )
    with modules_from(tmp_path), pytest.raises(ExperimentError) as raised:
        plan(tmp_path / "e.yaml")
    assert (
        "rerank.name: The reranker 'broken:Mine' does not load (ModuleNotFoundError: No module named 'no_such_package')"
        in str(raised.value)
    )
    assert f"reranker 'missing:Mine' is not there: put missing.py into {tmp_path}" in str(raised.value)


def test_models_are_objects_too(base):
    """Models of LangChain's, as anybody has them, in the roles of ours."""
    embedding = DeterministicFakeEmbedding(size=16)
    chat = FakeListChatModel(responses=['{"answer": "290 bar [1]", "citations": [1]}'])
    asked = base.set({"retrieval.mode": "dense", "answer.name": "llm"})
    (trace, *_) = asked.replace(embedding_model=embedding, generation_model=chat).run()
    assert trace.answer.text == "290 bar [1]"
    assert trace.hits["dense"]
    assert asked.replace(embedding_model=embedding).index is not asked.index


def test_what_reads_splits_and_holds_the_documents_can_be_an_object(base, tmp_path):
    by_line = base.replace(splitter=lambda text: [line for line in text.splitlines() if line.strip()])
    assert by_line.index.manifest.n_children > base.index.manifest.n_children
    assert by_line.index.digest != base.index.digest
    stored = base.set("retrieval.mode", "dense").replace(store=InMemoryVectorStore, embedding_model=HashEmbedder())
    assert all(trace.ranked for trace in stored.run())


def test_a_question_typed_as_the_dataset_asks_it_has_its_labels(base):
    question = base.dataset.questions[0]
    asked = base.ask(f" {question.text} ")
    assert asked.question.question_id == "q1" and asked.question.evidence[0].start is not None
    assert [score.status for score in evaluate([asked], ["retrieval.mrr@10"])] == ["scored"]
    assert base.ask("Who founded it?").question.question_id == "asked"
    limited = base.ask(question.text, may_see=()).question
    assert limited.may_see == () and not limited.answers  # a label may tell what the asker may not see


def test_a_trace_knows_what_its_hits_say_where_people_look_at_it_and_not_where_a_sweep_runs(base):
    (trace, *_) = base.run()
    assert all(trace.text(hit) == base.index.text(hit) != "" for hit in (*trace.candidates, *trace.ranked))
    (lean, *_) = base.run(read=lambda _: ())
    assert lean.ranked == trace.ranked and not lean.texts


def test_evidence_that_nobody_looked_for_is_told_as_such(base):
    traces = [replace(trace, question=base.dataset.questions[0]) for trace in base.run()[:1]]
    (score,) = evaluate(traces, ["ragas.non_llm_context_recall"])
    assert score.status == "not_applicable" and "nobody looked for it, as Pipeline.run and" in score.reason
