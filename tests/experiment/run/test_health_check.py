"""Two questions through each variant first: what would fail in all of them stops the sweep, named in one sentence."""

import json
from dataclasses import replace

import pytest
from loopback_chat import loopback_chat
from small_plans import run_jobs_here
from typer.testing import CliRunner

from rag_lab.cli import app
from rag_lab.errors import RagLabError
from rag_lab.experiment.executors.local import Done, Job
from rag_lab.experiment.run.run_variants import CHECKED_FILE, check_run, check_variants, is_worth_checking
from rag_lab.records import Question, Score, StageRecord, Trace
from rag_lab.runs.run_folder import RunFolder, VariantPlan, write_json
from rag_lab.runs.variant_files import write_scores, write_traces

from .test_sweep import write_experiment

IDS = tuple(f"q{n}" for n in range(20))
FINE = StageRecord("generate", "ok")
DOWN = StageRecord("generate", "failed", "status 500", curable=True)
NONSENSE = StageRecord("parse", "failed", "no JSON")


@pytest.fixture
def run(tmp_path):
    plans = (VariantPlan("a", "a"), VariantPlan("b", "b"))
    return RunFolder(tmp_path / "run", "n", "q", "d", "a", (), 3, plans, questions=IDS, answered=("q7", "q9", "q11"))


def checked(run, stages, reason="", scores=(), keep_going=False):
    """Check variant `a`, whose two questions go through `stages`."""
    small = check_run(run)

    folder = small.variant_dir("a")
    folder.mkdir(parents=True)
    traces = [Trace(Question(q, "why?"), stages=some) for q, some in zip(small.questions, stages, strict=True)]
    write_traces(folder / "traces.jsonl", traces)
    write_scores(folder / "scores.parquet", {"a": list(scores)})
    write_json(folder / "record.json", {"curable": {"questions": 0, "scores": len(scores)}})
    job = Job("a", small.path, small.path, {}, small.path)
    return check_variants(small, [Done(job, reason, 1.0)], keep_going=keep_going)


def test_two_questions_are_asked_that_are_answered_each_once(run):
    small = check_run(run)
    assert (small.questions, small.answered, small.repeats) == (("q7", "q9"), ("q7", "q9"), 1)
    assert RunFolder.open(small.path) == small
    assert check_run(replace(run, answered=())).questions == ("q0", "q1")
    assert check_run(replace(run, answered=("q3",))).questions == ("q0", "q3")


def test_a_check_that_finds_nothing_leaves_nothing(run):
    assert checked(run, [(FINE,), (DOWN,)]) == []  # one of two may fail
    assert not (run.path / "check").exists()


def test_what_has_passed_is_not_checked_again_until_it_is_another(run, monkeypatch):
    monkeypatch.setattr("rag_lab.experiment.run.run_variants.calls_left", lambda run: (100, None))
    run.path.mkdir()
    assert is_worth_checking(run, {"a": "1"})
    write_json(run.path / CHECKED_FILE, {"a": "1", "b": "2"})
    assert not is_worth_checking(run, {"b": "2"})
    assert is_worth_checking(run, {"a": "3"})
    assert is_worth_checking(run, {"a": "1", "c": "1"})
    (run.path / CHECKED_FILE).write_text("{", encoding="utf-8")
    assert is_worth_checking(run, {"a": "1"})


@pytest.mark.parametrize(
    ("stages", "reason", "told"),
    [
        ([(DOWN,), (replace(DOWN, reason="status 502"),)], "", "a fails at generate: status 500"),
        ([(NONSENSE,), (NONSENSE,)], "", "a fails at parse: no JSON"),
        ([(FINE,), (FINE,)], "The key was rejected.", "a fails at its notebook: The key was rejected"),
        ([(replace(DOWN, status="fallback"),)] * 2, "", "a fails at generate: status 500"),
    ],
)
def test_what_fails_in_both_questions_stops_the_sweep_in_one_sentence(run, stages, reason, told):
    with pytest.raises(RagLabError, match=f"beyond a check of q7 and q9: {told}. Mend it .* or give --keep-going"):
        checked(run, stages, reason)
    assert (run.path / "check").is_dir()
    assert checked(run, stages, reason, keep_going=True) == [f"The check of two questions found: {told}."]


def test_replies_that_fail_for_different_reasons_are_findings(run):
    assert checked(run, [(NONSENSE,), (replace(NONSENSE, reason="cut off"),)]) == []


def test_a_judge_that_is_down_is_found(run):
    scores = [Score(q, "judged", None, "failed", "status 500") for q in ("q7", "q9")]
    with pytest.raises(RagLabError, match="a fails at judged: status 500"):
        checked(run, [(FINE,), (FINE,)], scores=scores)


@pytest.mark.parametrize(
    ("calls", "minutes", "worth"), [(100, None, True), (100, 5.0, True), (100, 1.0, False), (0, 0.0, False)]
)
def test_it_is_worth_it_where_calls_are_left_for_more_than_two_minutes(run, monkeypatch, calls, minutes, worth):
    row = {"calls_estimated": calls, "minutes_estimated": minutes, "calls_spent": 0, "minutes_spent": 0.0}
    monkeypatch.setattr("rag_lab.experiment.sweep_status.spending_rows", lambda run: [row])
    assert is_worth_checking(run, {"a": "1"}) is worth
    assert not is_worth_checking(replace(run, questions=IDS[:8]), {"a": "1"})


@pytest.mark.slow
def test_a_sweep_whose_model_is_down_stops_after_two_questions_and_nothing_is_done_twice(tmp_path, monkeypatch):
    run_jobs_here(monkeypatch)
    with loopback_chat(broken=True) as chat:
        path, out = str(write_experiment(tmp_path, chat)), str(tmp_path / "run")
        down = CliRunner().invoke(app, ["sweep", path, "--out", out, "--check"])
        assert isinstance(down.exception, RagLabError)
        assert "baseline fails at generate" in str(down.exception)
        assert not (tmp_path / "run" / "manifest.json").exists()
        chat.broken, asked = False, len(chat.prompts)
        healed = CliRunner().invoke(app, ["sweep", path, "--out", out, "--check"])
        assert healed.exit_code == 0, healed.stderr
        assert len(chat.prompts) - asked == 2 * 2  # two answers of each of two variants, the check's included
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["variants"]
