"""How runs stand that run, have ended, were stopped or killed, here and elsewhere."""

import json
import os
import time

import pytest
from run_folder_fixture import build_run

from rag_lab._kit.machine import Process
from rag_lab.errors import RagLabError
from rag_lab.experiment.sweep_status import Left, stage_left_s, sweep_left, sweep_status, variant_left
from rag_lab.memory.ledger import Caller, Ledger, Made
from rag_lab.notebook.display import status
from rag_lab.runs.run_folder import DONE_FILE, MANIFEST_FILE, RunFolder, VariantPlan, write_json
from rag_lab.runs.variant_files import LIVE_FILE, LiveEnd, LiveSweep, LiveVariant

ME = Process.of()
GONE = ME._replace(pid=ME.pid, began="1")
ELSEWHERE = Process("another", "", 1, "")


@pytest.fixture
def run(tmp_path):
    """Four variants, of which none has run."""
    plans = tuple(VariantPlan(name, name) for name in "abcd")
    found = RunFolder(tmp_path / "run", "mine", "q", "d", "a", (), 1, plans, questions=("q1", "q2"))
    found.write_plan()
    for name in "abcd":
        found.variant_dir(name).mkdir(parents=True)
    return found


def at_work(run, process, seen=0.0):
    """`a` has ended, `b` failed, `c` is at work, `d` waits."""
    now = time.time()
    ended = {"a": LiveEnd("ok", "", 30.0), "b": LiveEnd("failed", "The key\x1b[2J is missing.", 1.0)}
    write_json(run.path / LIVE_FILE, LiveSweep(process, now - 60, now - seen, 1, "variants", {"c": now - 10}, ended))
    (run.variant_dir("a") / DONE_FILE).write_text('{"seconds": 30.0}')
    write_json(run.variant_dir("a") / "record.json", {"results": {"remembered": 7, "computed": 5}})
    write_json(
        run.variant_dir("c") / LIVE_FILE, LiveVariant("generate", now - 5, 1, 2, 0, 3, 4, 1, 0, "generate: refused")
    )
    ledger = Ledger(run.path / "ledger.sqlite")
    ledger.start(None, None, None)
    permit = ledger.ask(Caller("c", "generate", "m"), [0.5])
    ledger.correct(permit.numbers, [Made(10, 5, 0.25, 1.0)])


def test_each_variant_of_a_sweep_that_runs_says_where_it_is(run):
    at_work(run, ME)
    found = sweep_status(run.path)
    a, b, c, d = found.variants
    assert found.state == "running" and str(os.getpid()) in found.said
    assert (a.state, a.remembered, a.computed, a.seconds) == ("ok", 7, 5, 30.0)
    assert (b.state, b.reason) == ("failed", "The key\x1b[2J is missing.")
    assert (c.state, c.stage, c.done, c.total, c.remembered, c.computed) == ("running", "generate", 1, 2, 3, 4)
    assert (c.calls, c.cost_usd, c.failed, c.reason) == (1, 0.25, 1, "generate: refused")
    assert d.state == "waiting"
    assert 0 < c.left.least_s < c.left.most_s < found.left.most_s
    assert (found.calls, found.cost_usd, found.is_well) == (1, 0.25, False)


def test_it_is_shown_as_text_and_html_without_control_characters_and_secrets(run, monkeypatch):
    at_work(run, ME)
    text, html = str(sweep_status(run.path)), sweep_status(run.path)._repr_html_()
    for shown in (text, html):
        assert "generate" in shown and "1/2" in shown and "The key" in shown
        assert "\x1b" not in shown


def test_one_that_was_killed_is_said_and_one_elsewhere_only_when_it_is_silent(run):
    at_work(run, GONE)
    found = sweep_status(run.path)
    assert found.state == "killed" and "not running any more" in found.said and "goes on" in found.said
    assert found.left is None and not found.is_well
    at_work(run, ELSEWHERE)
    assert sweep_status(run.path).state == "running"
    at_work(run, ELSEWHERE, seen=3600)
    found = sweep_status(run.path)
    assert found.state == "silent" and "for 60 min" in found.said


def test_one_that_was_stopped_by_hand_goes_on_with_the_same_command(run):
    found = sweep_status(run.path)
    assert found.state == "stopped" and "goes on" in found.said and not found.is_well
    assert {one.state for one in found.variants} == {"waiting"}


def test_one_that_has_ended_tells_of_each_variant_how(tmp_path):
    run = build_run(tmp_path / "run")
    found = sweep_status(run.path)
    assert found.state == "finished" and not found.is_well  # the fourth failed
    assert [one.state for one in found.variants] == ["ok", "ok", "ok", "failed"]
    manifest = json.loads((run.path / MANIFEST_FILE).read_text())
    manifest["variants"][found.variants[1].variant_id] |= {"status": "stopped", "reason": "stopped by limits.calls = 2"}
    write_json(run.path / MANIFEST_FILE, manifest)
    found = sweep_status(run.path)
    assert (found.state, found.said) == ("stopped", "Stopped by limits.calls = 2.")


def test_a_race_is_at_its_last_round(run):
    for number, process in (("1", None), ("2", GONE)):
        part = RunFolder(run.path / "rounds" / number, "mine", "q", "d", "a", (), 1, run.variants)
        part.write_plan()
        if process:
            write_json(part.path / LIVE_FILE, LiveSweep(process, 1.0, 2.0, 1, "variants"))
        else:
            write_json(part.path / MANIFEST_FILE, {"variants": {}})
    found = sweep_status(run.path)
    assert [one.state for one in found.rounds] == ["finished", "killed"]
    assert found.state == "killed" and found.said.startswith("Round 2: ")
    assert "Round 1: finished" in str(found)


def test_a_folder_that_is_no_run_is_one_sentence(tmp_path):
    with pytest.raises(RagLabError, match="is no run folder"):
        status(tmp_path)


def test_a_live_view_ends_with_the_run(run, monkeypatch):
    at_work(run, ME)
    shown = []

    class Handle:
        def update(self, found):
            shown.append(found.state)

    monkeypatch.setattr("IPython.display.display", lambda found, display_id: shown.append(found.state) or Handle())
    monkeypatch.setattr("rag_lab.notebook.display.time.sleep", lambda s: at_work(run, GONE))
    assert status(run, watch=True).state == "killed"
    assert shown == ["running", "killed"]


@pytest.mark.parametrize(
    ("done", "total", "known", "left"),
    [(5, 10, 0, 10.0), (5, 10, 3, 25.0), (5, 10, 5, None), (0, 10, 0, None), (3, None, 0, None), (10, 10, 0, 0.0)],
)
def test_a_stage_goes_on_at_the_pace_of_what_it_has_computed_itself(done, total, known, left):
    assert stage_left_s(done, total, known, 10.0) == left


def test_a_variant_takes_as_long_as_others_did_and_no_less_than_its_stage():
    assert variant_left(10.0, None, []) is None
    assert variant_left(10.0, 4.0, []) == Left(4.0, None)
    assert variant_left(10.0, None, [20.0, 40.0]) == Left(10.0, 30.0)
    assert variant_left(10.0, 15.0, [20.0, 40.0]) == Left(15.0, 30.0)
    assert variant_left(50.0, None, [20.0, 40.0]) == Left(0.0, None)  # slower than all: nobody knows by how much
    assert variant_left(30.0, 15.0, [20.0, 40.0]) == Left(15.0, None)


def test_a_sweep_takes_its_work_divided_by_the_jobs():
    assert sweep_left([], 0, 1, [5.0], None) == Left(0.0, 0.0)
    assert sweep_left([], 1, 1, [10.0], None) == Left(5.0, 20.0)  # one alone tells little
    assert sweep_left([Left(10.0, 30.0)], 2, 1, [20.0, 40.0], None) == Left(50.0, 110.0)
    two = sweep_left([Left(10.0, 30.0), Left(0.0, 10.0)], 2, 2, [20.0, 40.0], None)
    assert two == Left(25.0, 100.0)
    assert sweep_left([Left(10.0, None)], 1, 1, [20.0, 40.0], None) == Left(30.0, None)


def test_before_one_has_ended_the_bill_tells_within_a_factor_of_two_or_nobody():
    assert sweep_left([None], 3, 2, [], 100.0) == Left(25.0, 200.0)
    assert sweep_left([None], 3, 2, [], None) is None
    assert sweep_left([Left(7.0, None)], 3, 2, [], None) == Left(7.0, None)


def test_it_is_told_in_minutes():
    assert Left(60.0, 150.0).text() == "1.0 min to 2.5 min"
    assert Left(601.0, 601.0).text() == "10 min"
    assert Left(30.0, None).text() == "≥ 0.5 min"
