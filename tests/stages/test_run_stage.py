import sqlite3
from dataclasses import dataclass, replace

import pytest
from doubles import Shout
from small_plans import CHAT, install_doubles, run_in_process, write_plan

from rag_lab._kit.digest import digest
from rag_lab._kit.observability import work_now
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.registry import reads_of
from rag_lab.experiment.forecast.describe import describe
from rag_lab.experiment.forecast.work import Tally, dry_traces, walk
from rag_lab.memory import results
from rag_lab.memory.ledger import Ledger
from rag_lab.memory.results import Memory, Replayed
from rag_lab.models.custom_models import CustomModelError
from rag_lab.models.shared import chat_model
from rag_lab.pipeline import Pipeline
from rag_lab.records import Evidence, Hit, MachineUse, Question, Trace
from rag_lab.stages.run_stage import run_stage, stage_key, with_readers
from rag_lab.stages.stage import Outcome


def traces(*texts, repeat=0):
    return [Trace(Question(f"q{i}", text), repeat) for i, text in enumerate(texts)]


@pytest.fixture
def memory(tmp_path):
    return Memory(tmp_path / "m.sqlite")


def test_results_stand_in_order_and_records_say_what_ran(memory):
    done = run_stage(Shout(), traces("a", "b", "c"), memory)
    assert [trace.search_query for trace in done] == ["A", "B", "C"]
    assert [(record.stage, record.status, record.remembered) for record in done[0].stages] == [("shout", "ok", False)]


def test_what_others_have_paid_for_counts_as_this_results_own(memory):
    replayed = Replayed(seconds=50.0)  # by an earlier stage

    class Sharing(Shout):
        def run(self, traces):
            replayed.seconds += 600.0
            return super().run(traces)

    (record, *_), *_ = (trace.stages for trace in run_stage(Sharing(), traces("a", "b"), memory, replayed=replayed))
    assert record.replayed_s == 300.0 and 300.0 < record.seconds < 301.0
    (again,) = run_stage(Sharing(), traces("a"), memory, replayed=replayed)[0].stages
    assert (again.seconds, again.replayed_s, again.remembered) == (record.seconds, 300.0, True)
    (alone,) = run_stage(Shout(version=2), traces("a"), memory)[0].stages
    assert alone.replayed_s == 0.0


def test_what_a_model_took_of_the_machine_is_remembered(memory):
    class Measured(Shout):
        def run(self, traces):
            return [replace(outcome, machine=MachineUse(1.5, 300.0, None)) for outcome in super().run(traces)]

    run_stage(Measured(), traces("a"), memory)
    (again,) = run_stage(Measured(), traces("a"), memory)[0].stages
    assert (again.remembered, again.machine) == (True, MachineUse(1.5, 300.0, None))


def test_a_record_names_the_chat_model_that_the_configuration_named(memory):
    class Asking(Shout):
        model = chat_model("llamacpp:smollm2")  # never called: nothing loads

    first, again = (run_stage(Asking(), traces("a"), memory)[0].stages[0] for _ in range(2))
    assert (first.model, again.model) == ("llamacpp:smollm2", "llamacpp:smollm2")
    assert run_stage(Shout(), traces("a"), memory)[0].stages[0].model == ""


def test_a_second_run_computes_nothing_and_keeps_the_first_runs_seconds(memory):
    first = run_stage(Shout(), traces("a", "b"), memory)
    stage = Shout()
    second = run_stage(stage, traces("a", "b"), memory)
    assert stage.seen == []
    assert all(trace.stages[0].remembered for trace in second)
    assert [t.stages[0].seconds for t in second] == [t.stages[0].seconds for t in first]
    assert [replace(t, stages=()) for t in second] == [replace(t, stages=()) for t in first]


@pytest.mark.parametrize(
    ("first", "version", "asked", "repeat", "seen"),
    [
        (Shout(), 1, ["a", "new", "b"], 0, ["new"]),
        (Shout(), 1, ["a"], 1, ["a"]),  # repeats are never shared
        (Shout(), 2, ["a"], 0, ["a"]),
        (Shout(transient="b"), 1, ["a", "b"], 0, ["b"]),  # another attempt may cure it
    ],
)
def test_what_is_new_costs_itself_alone(memory, first, version, asked, repeat, seen):
    run_stage(first, traces("a", "b"), memory)
    stage = Shout(version=version)
    run_stage(stage, traces(*asked, repeat=repeat), memory)
    assert stage.seen == seen


def test_equal_questions_are_computed_once(memory):
    stage = Shout()
    done = run_stage(stage, traces("a", "a"), memory)
    assert stage.seen == ["a"]
    assert [trace.search_query for trace in done] == ["A", "A"]


def test_a_kill_loses_one_batch_at_most(memory):
    with pytest.raises(RuntimeError):
        run_stage(Shout(fail_at="d"), traces("a", "b", "c", "d"), memory)
    stage = Shout()
    run_stage(stage, traces("a", "b", "c", "d"), memory)
    assert stage.seen == ["c", "d"]


def test_failed_traces_pass_through_untouched(memory):
    class Refuse(Shout):
        def run(self, traces):
            return [Outcome(status="failed", reason="no") for _ in traces]

    failed = run_stage(Refuse(name="refuse"), traces("a"), memory)
    assert failed[0].failure.reason == "no"
    stage = Shout()
    assert run_stage(stage, failed, memory) == failed
    assert stage.seen == []


def test_cheap_stages_are_not_stored(memory):
    run_stage(Shout(costly=False), traces("a"), memory)
    assert not memory.path.exists()


def test_hits_survive_the_memory(memory):
    hit = Hit("p", "p/0", "f.pdf", 3, 0, 10, 0.5, {"dense": 0.5})

    class Find(Shout):
        def run(self, traces):
            return [Outcome({"base_hits": (hit,)}) for _ in traces]

    run_stage(Find(), traces("a"), memory)
    assert run_stage(Find(), traces("a"), memory)[0].base_hits == (hit,)


@dataclass
class Find(Shout):
    """A search of its own name, which finds one hit that is named so, too."""

    def __post_init__(self):
        self.writes = (f"hits.{self.name}",)

    def run(self, traces):
        super().run(traces)
        return [Outcome({f"hits.{self.name}": (Hit(self.name, "c", "f.pdf", 3, 0, 9, 0.5),)}) for _ in traces]


@dataclass
class Count(Shout):
    reads: tuple = ("hits.mine",)

    def run(self, traces):
        super().run(traces)
        return [Outcome({"search_query": str(len(trace.hits.get("mine", ())))}) for trace in traces]


def test_each_search_adds_its_hits_to_those_of_the_others(memory):
    for _ in range(2):  # the second time from the memory
        done = run_stage(Find(name="mine"), run_stage(Find(name="bm25"), traces("a"), memory), memory)
        assert {name: [hit.parent_id for hit in found] for name, found in done[0].hits.items()} == {
            "bm25": ["bm25"],
            "mine": ["mine"],
        }


def test_a_result_depends_on_the_searches_that_are_read_and_on_no_other(memory):
    mine = run_stage(Find(name="mine"), traces("a"), memory)
    both = run_stage(Find(name="bm25"), mine, memory)
    seen = [(stage := Count()) and run_stage(stage, given, memory)[0].search_query for given in (mine, both)]
    assert seen == ["1", "1"] and stage.seen == []
    (without,) = run_stage(stage, traces("a"), memory)
    assert without.search_query == "0" and stage.seen == ["a"]


def test_the_key_ignores_what_the_stage_does_not_read():
    stage = Shout()
    first, second = traces("a")[0], Trace(Question("other", "a", answers=("x",)))
    assert stage_key(stage, "a", first) == stage_key(stage, "a", second)
    assert stage_key(stage, "a", first) != stage_key(stage, "b", first)


def test_progress_counts_up_to_the_number_of_traces(memory):
    calls = []
    run_stage(Shout(), traces("a", "b", "c"), memory, lambda *call: calls.append(call))
    assert calls == [("shout", 0, 3), ("shout", 2, 3), ("shout", 3, 3)]


def test_a_wait_says_once_for_whom_and_ends_when_nobody_renews_the_claims(memory, monkeypatch, caplog):
    monkeypatch.setattr(results, "_VOID_S", 1.5)
    monkeypatch.setattr(results, "_TELL_AFTER_S", 0.5)
    asked, calls = traces("a", "b"), []
    memory.claim([stage_key(Shout(), digest(Shout().identity()), trace) for trace in asked], 2)
    with sqlite3.connect(memory.path) as database:
        database.execute("UPDATE held SET host = '4f0c2a1b77de', pid = 57")
    done = run_stage(Shout(), asked, memory, lambda *call: calls.append(call))
    assert [trace.search_query for trace in done] == ["A", "B"]
    (said,) = caplog.messages
    assert said == "shout waits for process 57 on 4f0c2a1b77de, which computes the same results."
    assert ("shout waits for process 57 on 4f0c2a1b77de", 0, 2) in calls
    assert calls[-1] == ("shout", 2, 2)


def test_an_embedder_of_ones_own_costs_only_the_questions_that_it_fails_for(memory):
    """A batch that fails as a whole is run again question by question, and what failed is not remembered."""

    class Refusing(Shout):
        def run(self, traces):
            if any(trace.question.text == "bad" for trace in traces):
                raise CustomModelError("the embedder 'mine:E' raised ValueError: no vector for this")
            return super().run(traces)

    for _ in range(2):
        good, bad, other = run_stage(Refusing(), traces("a", "bad", "c"), memory)
        assert [good.search_query, other.search_query] == ["A", "C"]
        assert (bad.stages[0].status, bad.stages[0].curable) == ("failed", True)
        assert bad.failure and "no vector for this" in bad.stages[0].reason
        assert not bad.stages[0].remembered


class Watcher:
    def __init__(self):
        self.seen = []

    def __call__(self, stage, done, total):
        pass

    def saw(self, stage, outcomes, origin):
        self.seen.append((stage, len(outcomes), origin))


def test_a_watcher_is_told_where_each_result_came_from(memory):
    watcher = Watcher()
    run_stage(Shout(), traces("a", "b"), memory, watcher)
    run_stage(Shout(), traces("a", "b", "c"), memory, watcher)
    run_stage(Shout(), traces("a"), None, watcher)
    assert watcher.seen == [
        ("shout", 2, "computed"),
        ("shout", 2, "remembered"),
        ("shout", 1, "computed"),
        ("shout", 1, "cheap"),
    ]


def test_a_question_that_fails_is_logged_with_its_id(memory, monkeypatch):
    monkeypatch.setattr(Shout, "run", lambda self, traces: [Outcome(status="failed", reason="no voice")])
    seen = []
    monkeypatch.setattr("rag_lab.stages.run_stage._LOGGER.info", lambda *said: seen.append((said, work_now.get())))
    run_stage(Shout(), traces("a"), memory)
    said, work = seen[-1]
    assert said == ("%s %s: %s", "shout", "failed", "no voice")
    assert (work.stage, len(work.questions)) == ("shout", 1)


def test_what_failed_for_good_is_tried_again_only_where_that_is_asked_for_and_stays_until_then(memory, monkeypatch):
    calls = []

    def run(self, traces):
        calls.append(len(traces))
        if len(calls) == 2:
            raise KeyboardInterrupt
        if len(calls) > 2:
            return [Outcome(updates={"search_query": "A"}) for _ in traces]
        return [Outcome(status="failed", reason="no JSON") for _ in traces]

    monkeypatch.setattr(Shout, "run", run)
    assert run_stage(Shout(), traces("a"), memory)[0].failure
    assert run_stage(Shout(), traces("a"), memory)[0].failure
    assert calls == [1]
    monkeypatch.setenv(results.RETRY_VARIABLE, "1")
    with pytest.raises(KeyboardInterrupt):
        run_stage(Shout(), traces("a"), memory)
    assert memory.counts() == {"shout": 1}
    assert run_stage(Shout(), traces("a"), memory)[0].search_query == "A"
    assert run_stage(Shout(), traces("a"), memory)[0].search_query == "A"
    assert calls == [1, 1, 1]


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
    ("metrics", "answered", "question", "fields"),
    [
        (["retrieval.mrr@5", "cost.seconds"], {"q"}, QUESTION, {"ranked"}),
        ([CONTEXT], set(), QUESTION, {"passages"}),
        ([CONTEXT], {"q"}, replace(QUESTION, evidence=()), set()),  # it does not apply to the question
        (["ragas.faithfulness"], {"q"}, QUESTION, {"passages", "answer"}),
        (["ragas.faithfulness"], set(), QUESTION, set()),  # it has no value without an answer
        ([], {"q"}, QUESTION, set()),
    ],
)
def test_metrics_tell_what_they_read(metrics, answered, question, fields):
    assert reads_of(metrics, answered)(question) == fields


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
        steps = walk(pipeline, plan.dataset.questions, set(), reads_of(metrics, ()))
        foreseen = dry_traces(pipeline, plan.dataset.questions, 0, steps, Tally())
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
