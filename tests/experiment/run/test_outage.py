"""An outage is no result: what another attempt may cure is tried again by the same command, and nothing else is."""

import json
import shutil
from dataclasses import replace

import pytest
from loopback_chat import loopback_chat
from small_plans import CHAT, calls_made, install_doubles, run_in_process, write_plan
from typer.testing import CliRunner

from rag_lab.cli import app
from rag_lab.config import PipelineConfig
from rag_lab.experiment.manifest import VariantState
from rag_lab.experiment.run.outputs import better_of, earlier, move_variant, put_back_all, whole
from rag_lab.memory.ledger import Ledger
from rag_lab.models.protocols import ChatReply
from rag_lab.records import Question, Score, StageRecord, Trace
from rag_lab.runs.run_folder import RunFolder, VariantPlan, write_json
from rag_lab.runs.variant_files import read_traces, write_scores, write_traces

from .test_sweep import write_experiment

ANSWERED = 2  # questions of each of the two variants
DOWN = ChatReply(error="the server answered with status 500", transient=True)


@pytest.mark.slow
def test_the_same_command_cures_an_outage_and_then_has_nothing_to_do(tmp_path):
    with loopback_chat(broken=True) as chat:
        path, out = str(write_experiment(tmp_path, chat)), str(tmp_path / "run")

        down = CliRunner().invoke(app, ["sweep", path, "--out", out])
        assert down.exit_code == 1
        assert "Another attempt may cure 2 questions of baseline, 2 questions of final_k-1" in down.stderr
        assert "start the same command again" in down.stderr

        dry = CliRunner().invoke(app, ["sweep", path, "--out", out, "--dry-run"])
        assert "Tried again, since another attempt may cure what failed: 2 questions of baseline, 2" in dry.stdout

        chat.broken, asked = False, len(chat.prompts)
        healed = CliRunner().invoke(app, ["sweep", path, "--out", out])
        assert healed.exit_code == 0, healed.stderr
        assert len(chat.prompts) - asked == 2 * ANSWERED
        assert "Tried again, since another attempt may cure what failed: 2 questions of baseline, 2" in healed.stderr
        run = RunFolder.open(out)
        for variant in ("baseline", "final_k-1"):
            assert sum(trace.answer is not None for trace in run.traces(variant)) == ANSWERED
        assert sorted(path.name for path in run.path.iterdir() if path.is_dir()) == ["variants"]

        again = CliRunner().invoke(app, ["sweep", path, "--out", out])
        assert again.exit_code == 0
        assert "Tried again" not in again.stderr
    assert len(chat.prompts) - asked == 2 * ANSWERED
    assert all(state["resumed"] for state in RunFolder.open(out).manifest()["variants"].values())


def test_a_variant_counts_failures_fallbacks_and_scores_that_may_be_cured(tmp_path, monkeypatch):
    doubles = install_doubles(monkeypatch)
    doubles.chat.script = lambda request: DOWN
    query = {"rewrite": "llm", "hyde": "none"}
    checked = write_plan(
        tmp_path,
        base={"models": {"generation": CHAT, "understanding": CHAT}, "query": query, "answer": {"name": "llm"}},
        factors={},
        limits={"answers": 2},
    )
    ((_, run),) = run_in_process(checked, Ledger(tmp_path / "ledger"), monkeypatch)
    assert run.record()["curable"] == {"questions": 4, "scores": 0}  # all four fell back to their own words
    assert run.record()["failed_stages"] == {"generate": 2}


def test_a_failure_of_the_reply_itself_is_not_tried_again(tmp_path, monkeypatch):
    install_doubles(monkeypatch).chat.script = lambda request: "no JSON"
    ledger = Ledger(tmp_path / "ledger")
    ((_, run),) = run_in_process(write_plan(tmp_path, factors={}), ledger, monkeypatch)
    assert run.record()["failed_stages"] == {"parse": 4}
    assert run.record()["curable"] == {"questions": 0, "scores": 0}
    assert calls_made(ledger) == {"generate": 4}


def test_a_score_that_the_judge_could_not_give_is_counted(tmp_path, monkeypatch):
    def script(request):
        text = request.messages[-1].content
        return json.dumps({"answer": "It is 290 bar.", "citations": [1]}) if "Passages:" in text else DOWN

    install_doubles(monkeypatch).chat.script = script
    checked = write_plan(
        tmp_path, factors={}, judge=CHAT, metrics=["ragas.context_precision"], limits={"questions": 2, "answers": 2}
    )
    ((_, run),) = run_in_process(checked, Ledger(tmp_path / "ledger"), monkeypatch)
    assert [score.status for score in run.scores] == ["failed", "not_applicable"]
    assert run.record()["curable"] == {"questions": 0, "scores": 1}


def test_traces_of_code_that_did_not_mark_them_are_read(tmp_path):
    trace = Trace(Question("q1", "why?"), stages=(StageRecord("generate", "failed", "status 500", curable=True),))
    write_traces(tmp_path / "traces.jsonl", [trace])
    old = json.loads((tmp_path / "traces.jsonl").read_text())
    del old["stages"][0]["curable"]
    (tmp_path / "traces.jsonl").write_text(json.dumps(old) + "\n")
    (stage,) = trace.stages
    assert read_traces(tmp_path / "traces.jsonl") == [replace(trace, stages=(replace(stage, curable=False),))]


@pytest.fixture
def run(tmp_path):
    """A run whose variant `a` is whole, with one question that another attempt may cure."""
    found = RunFolder(tmp_path, "n", "q", "d", "a", (), 1, (VariantPlan("a", "a"),), questions=("q1",))
    write_variant(found, curable=1)
    return found


def write_variant(run, curable):
    folder = run.variant_dir("a")
    folder.mkdir(parents=True)
    write_traces(folder / "traces.jsonl", [Trace(Question("q1", "why?"))])
    write_scores(folder / "scores.parquet", {"a": [Score("q1", "cost.seconds", 0, 1.0, "scored")]})
    (folder / "config.yaml").write_text(PipelineConfig().to_yaml())
    write_json(folder / "passages.json", {})
    curables = {"questions": curable, "scores": 0}
    write_json(folder / "record.json", {"config_identity": PipelineConfig().identity, "curable": curables})
    write_json(folder / "done.json", {"identity": "same", "seconds": 3.0})


def ended(status="ok", reason="", curable=0):
    return VariantState("a", status, reason, 1.0, record={"curable": {"questions": curable, "scores": 0}})


def test_a_killed_attempt_loses_nothing(run):
    move_variant("a", run, earlier(run))
    run.variant_dir("a").mkdir()
    (run.variant_dir("a") / "config.yaml").write_text("of the attempt")
    assert whole(run, "a", "same").retryable.questions == 1  # also while the attempt runs
    put_back_all(run)
    assert whole(run, "a", "same").retryable.questions == 1
    assert (run.variant_dir("a") / "config.yaml").read_text() != "of the attempt"
    assert not (run.path / "earlier").exists()


def test_an_attempt_that_had_ended_before_the_kill_is_kept(run):
    move_variant("a", run, earlier(run))
    write_variant(run, curable=0)
    put_back_all(run)
    assert whole(run, "a", "same").retryable.total == 0


@pytest.mark.parametrize(
    ("attempt", "told"),
    [
        (ended("failed", "The kernel died."), "The kernel died."),
        (ended("stopped", "limits.calls = 3 is reached"), "limits.calls"),
        (ended(curable=5), "5 questions failed in it"),
    ],
)
def test_an_attempt_that_is_worse_is_not_kept(run, attempt, told):
    before = whole(run, "a", "same")
    move_variant("a", run, earlier(run))
    run.variant_dir("a").mkdir()
    state = better_of(run, attempt, before)
    assert (state.status, state.resumed, state.retryable.questions) == ("ok", True, 1)
    assert told in state.reason
    assert run.traces("a")


def test_an_attempt_that_is_no_worse_is_kept(run):
    before = whole(run, "a", "same")
    move_variant("a", run, earlier(run))
    shutil.copytree(run.path / "earlier" / "variants" / "a", run.variant_dir("a"))
    attempt = ended(curable=1)
    assert better_of(run, attempt, before) is attempt
