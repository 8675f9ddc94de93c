import sqlite3
from dataclasses import dataclass, replace

import pytest
from doubles import Shout

from rag_lab._kit.digest import digest
from rag_lab._kit.observing.work_context import work_now
from rag_lab.memory import results, sharing
from rag_lab.memory.results import Memory, Replayed
from rag_lab.models.own_models import OwnModelError
from rag_lab.models.shared import chat_model
from rag_lab.records import Hit, MachineUse, Question, Trace
from rag_lab.stages.run_stage import run_stage, stage_key
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


def test_one_new_question_costs_one_question(memory):
    run_stage(Shout(), traces("a", "b"), memory)
    stage = Shout()
    run_stage(stage, traces("a", "new", "b"), memory)
    assert stage.seen == ["new"]


def test_equal_questions_are_computed_once(memory):
    stage = Shout()
    done = run_stage(stage, traces("a", "a"), memory)
    assert stage.seen == ["a"]
    assert [trace.search_query for trace in done] == ["A", "A"]


def test_repeats_are_never_shared(memory):
    run_stage(Shout(), traces("a"), memory)
    stage = Shout()
    run_stage(stage, traces("a", repeat=1), memory)
    assert stage.seen == ["a"]


def test_another_version_shares_nothing(memory):
    run_stage(Shout(), traces("a"), memory)
    stage = Shout(version=2)
    run_stage(stage, traces("a"), memory)
    assert stage.seen == ["a"]


def test_a_kill_loses_one_batch_at_most(memory):
    with pytest.raises(RuntimeError):
        run_stage(Shout(fail_at="d"), traces("a", "b", "c", "d"), memory)
    stage = Shout()
    run_stage(stage, traces("a", "b", "c", "d"), memory)
    assert stage.seen == ["c", "d"]


def test_what_another_attempt_may_cure_is_not_remembered(memory):
    run_stage(Shout(transient="b"), traces("a", "b"), memory)
    stage = Shout()
    run_stage(stage, traces("a", "b"), memory)
    assert stage.seen == ["b"]


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
    monkeypatch.setattr(sharing, "_TELL_AFTER_S", 0.5)
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
                raise OwnModelError("the embedder 'mine:E' raised ValueError: no vector for this")
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
    monkeypatch.setattr("rag_lab.stages.run_stage._LOGGER.info", lambda *said: seen.append((said, work_now())))
    run_stage(Shout(), traces("a"), memory)
    ((said, work),) = seen
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
    monkeypatch.setenv(sharing.RETRY_VARIABLE, "1")
    with pytest.raises(KeyboardInterrupt):
        run_stage(Shout(), traces("a"), memory)
    assert memory.counts() == {"shout": 1}
    assert run_stage(Shout(), traces("a"), memory)[0].search_query == "A"
    assert run_stage(Shout(), traces("a"), memory)[0].search_query == "A"
    assert calls == [1, 1, 1]
