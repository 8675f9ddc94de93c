"""Work follows its reader: a stage runs where somebody reads what it sets, and nowhere else."""

import pytest
from whole_plan import CHAT, install_doubles, run_in_process, write_plan

from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.foreseen import reads_of
from rag_lab.experiment.forecast.describe import describe
from rag_lab.experiment.forecast.foreseen_work import Tally
from rag_lab.experiment.forecast.foresight import foresee_traces
from rag_lab.memory.ledger import Ledger
from rag_lab.pipeline import Pipeline
from rag_lab.records import Evidence, Question
from rag_lab.stages.readers import with_readers

SILENT = {"query": {"rewrite": "none", "hyde": "none"}, "answer": {"name": "none"}}
CONTEXT = "ragas.id_based_context_recall"
QUESTION = Question("q", "What?", answers=("That.",), evidence=(Evidence("a.txt"),))


@pytest.fixture
def doubles(monkeypatch):
    return install_doubles(monkeypatch)


@pytest.fixture
def run(tmp_path, monkeypatch, doubles):
    def run_plan(**changes):
        checked = write_plan(tmp_path, factors={}, **changes)
        ((_, variant),) = run_in_process(checked, Ledger(tmp_path / "ledger.sqlite"), monkeypatch)
        return checked, variant

    return run_plan


def names(stages):
    return [stage.name for stage in stages]


def stages_of(tmp_path, **changes):
    checked = write_plan(tmp_path, factors={}, **changes)
    return Pipeline.planned(checked.variants[0].config, checked.dataset).stages


def test_a_ranking_needs_all_that_leads_to_it_and_nothing_after(tmp_path, doubles):
    base = {
        "models": {"understanding": CHAT, "generation": CHAT, "hyde": CHAT},
        "query": {"rewrite": "llm", "hyde": "always"},
        "retrieval": {"mode": "rrf"},
        "rerank": {"name": "query_likelihood"},
        "select": {"diversity": "mmr"},
        "answer": {"name": "llm"},
    }
    stages = stages_of(tmp_path, base=base)
    everything = names(stages)
    assert everything[-3:] == ["context", "generate", "parse"]
    assert names(with_readers(stages, {"ranked"})) == everything[:-3]
    assert names(with_readers(stages, {"passages"})) == everything[:-2]
    assert names(with_readers(stages, {"answer"})) == everything


def test_a_stage_is_needed_for_what_others_read_not_for_its_place(tmp_path, doubles):
    base = {"models": {"understanding": CHAT}, "query": {"rewrite": "llm", "hyde": "none"}}
    stages = stages_of(tmp_path, base=base)
    on = {stage.name for stage in stages if stage.writes}
    needed = {stage.name for stage in with_readers(stages, {"query_class"}) if stage.writes}
    assert needed == {"remember", "understand"}
    assert {stage.name for stage in with_readers(stages, set()) if stage.writes} == set()
    assert "understand" in on


def test_a_search_runs_where_its_own_hits_are_read_or_those_of_all(tmp_path, doubles):
    stages = stages_of(tmp_path, base=SILENT | {"retrieval": {"mode": "rrf"}})
    searching = {"hits.bm25": ["search_bm25"], "hits.dense": ["search_dense"], "hits": ["search_dense", "search_bm25"]}
    for field, expected in searching.items():
        assert [
            name for name in names(with_readers(stages, {field})) if name in ("search_dense", "search_bm25")
        ] == expected


@pytest.mark.parametrize(
    ("metrics", "answered", "fields"),
    [
        (["retrieval.mrr@5", "cost.seconds"], {"q"}, {"ranked"}),
        ([CONTEXT], set(), {"passages"}),
        (["ragas.faithfulness"], {"q"}, {"passages", "answer"}),
        (["ragas.faithfulness"], set(), set()),  # it has no value without an answer
        ([], {"q"}, set()),
    ],
)
def test_metrics_tell_what_they_read(metrics, answered, fields):
    assert reads_of(metrics, answered)(QUESTION) == fields


def test_a_metric_that_does_not_apply_to_a_question_reads_nothing_of_it():
    assert reads_of([CONTEXT], {"q"})(Question("q", "What?", answers=("That.",))) == set()


def test_retrieval_alone_builds_no_context_and_asks_no_model_to_count(run, monkeypatch, doubles):
    counted = []
    monkeypatch.setattr(doubles.chat, "count_tokens", counted.append, raising=False)
    checked, variant = run(base=SILENT, metrics=["retrieval.mrr@10", "cost.seconds"])
    assert counted == []
    assert {trace.passages for trace in variant.traces} == {()}
    assert all(trace.ranked for trace in variant.traces)
    assert "context" not in {record.stage for trace in variant.traces for record in trace.stages}
    assert "context" not in variant.record()["models"]
    searched = {t.question.question_id: sum(r.seconds for r in t.stages) for t in variant.traces}
    assert searched == {s.question_id: s.value for s in variant.scores if s.metric == "cost.seconds"}
    assert "generation" not in describe(checked)


def test_the_dry_run_walks_the_stages_that_run(tmp_path, doubles):
    for metrics, has_context in ([["retrieval.mrr@10"], False], [[CONTEXT], True]):
        plan = write_plan(tmp_path, factors={}, base=SILENT, metrics=metrics)
        pipeline = Pipeline.planned(plan.variants[0].config, plan.dataset)
        foreseen = foresee_traces(pipeline, plan.dataset.questions, 0, set(), reads_of(metrics, ()), Tally())
        walked = {record.stage for each in foreseen for record in each.trace.stages}
        assert ("context" in walked) == has_context


def test_a_metric_that_reads_the_context_gets_it_for_the_questions_that_it_applies_to(run):
    _, variant = run(base=SILENT, metrics=[CONTEXT])
    assert {trace.question.question_id: bool(trace.passages) for trace in variant.traces} == {
        "q1": True,
        "q2": True,
        "q3": True,
    }
    assert {score.status for score in variant.scores} == {"scored"}


def test_only_what_is_answered_has_a_context(run):
    _, variant = run(limits={"answers": 1})
    assert sum(bool(trace.passages) for trace in variant.traces) == 1
    assert all(bool(trace.passages) == (trace.answer is not None) for trace in variant.traces)


def test_a_metric_added_later_says_why_it_has_no_value(run):
    _, variant = run(base=SILENT)
    added = evaluate(variant.traces, [CONTEXT, "ragas.non_llm_context_recall", "cost.seconds.context"])
    assert {(score.value, score.status, score.reason) for score in added} == {
        (None, "not_applicable", "no context was assembled, since nothing read it when this was run"),
        (None, "not_applicable", "stage context has not run"),
    }


def test_a_pipeline_that_is_used_directly_builds_the_context(tmp_path, doubles):
    checked = write_plan(tmp_path, factors={}, base=SILENT)
    pipeline = Pipeline(checked.dataset, checked.variants[0].config)
    (trace,) = pipeline.run([QUESTION])
    assert trace.passages
    (trace,) = pipeline.run([QUESTION], read=lambda question: ())
    assert trace.ranked and not trace.passages


def test_the_report_of_a_run_without_contexts_has_the_texts_of_its_passages(run, tmp_path):
    _, variant = run(base=SILENT)
    variant.out = tmp_path / "out"
    variant.out.mkdir()
    variant.save()
    text = (variant.out / "passages.json").read_text()
    assert "The curing oven runs at 180 degrees Celsius." in text


def test_a_reranker_is_not_needed_where_nobody_reads_its_order(tmp_path, doubles):
    stages = stages_of(tmp_path, base=SILENT | {"rerank": {"name": "query_likelihood"}})
    assert "rerank" not in names(with_readers(stages, {"candidates"}))
