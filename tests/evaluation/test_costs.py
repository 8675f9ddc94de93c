from dataclasses import replace

from factories import make_failed_trace, make_trace

from rag_lab.evaluation.evaluate import evaluate
from rag_lab.records import MachineUse, StageRecord


def test_sums_over_stages_as_first_computed():
    scores = evaluate([make_trace()], ["cost.seconds", "cost.tokens", "cost.usd", "cost.seconds.generate"])
    assert [score.value for score in scores] == [2.0, 130, 0.25, 1.5]


def test_thinking_is_a_part_of_what_was_written():
    thought = (
        StageRecord("hyde", tokens_out=9, thinking_tokens=5),
        StageRecord("generate", tokens_out=8, thinking_tokens=7),
    )
    scores = evaluate([replace(make_trace(), stages=thought)], ["cost.tokens", "cost.thinking_tokens"])
    assert [score.value for score in scores] == [17, 12]


def test_a_stage_that_has_not_run_has_no_cost():
    (score,) = evaluate([make_trace()], ["cost.seconds.hyde"])
    assert (score.status, score.value, score.reason) == ("not_applicable", None, "stage hyde has not run")


def test_a_stage_after_a_failure_has_failed():
    trace = make_failed_trace("retrieve", "index is gone")
    total, generate = evaluate([trace], ["cost.seconds", "cost.seconds.generate"])
    assert total.value == 0.1
    assert (generate.status, generate.reason) == ("failed", "retrieve failed: index is gone")


MACHINE = ["cost.tokens_per_second", "cost.load_seconds", "cost.memory_mb", "cost.joules"]


def asked(stage, model, machine, **what):
    return StageRecord(stage, model=model, machine=machine, **what)


def test_a_model_is_loaded_once_however_many_stages_ask_it():
    small, large = "llamacpp:smollm2", "transformers:smollm2"
    stages = (
        asked("understand", small, MachineUse(2.0, 300.0, 5.0), seconds=1.0, tokens_out=10),
        asked("hyde", small, MachineUse(2.0, 310.0, 6.0), seconds=2.0, tokens_out=20),
        asked("generate", large, MachineUse(4.0, 600.0, 9.0), seconds=3.0, tokens_out=30),
        StageRecord("parse", seconds=9.0),
    )
    scores = evaluate([replace(make_trace(), stages=stages)], MACHINE)
    assert [score.value for score in scores] == [10.0, 6.0, 910.0, 20.0]


def test_what_could_not_be_measured_is_missing_and_not_zero():
    unmetered = asked("generate", "llamacpp:smollm2", MachineUse(2.0, None, None), seconds=1.0, tokens_out=4)
    speed, load, memory, joules = evaluate([replace(make_trace(), stages=(unmetered,))], MACHINE)
    assert (speed.value, load.value) == (4.0, 2.0)
    assert (memory.status, memory.value) == ("not_applicable", None)
    assert joules.status == "not_applicable"
    assert "no energy meter" in joules.reason


def test_a_server_elsewhere_takes_nothing_of_this_machine():
    remote = asked("generate", "gemini:gemini-2.5-flash", None, seconds=2.0, tokens_out=4)
    speed, *rest = evaluate([replace(make_trace(), stages=(remote,))], MACHINE)
    assert speed.value == 2.0
    assert {score.status for score in rest} == {"not_applicable"}
    assert {score.reason for score in rest} == {
        "no chat model of this machine was asked, or what it took was not measured"
    }
