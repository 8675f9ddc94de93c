"""What a sweep leaves in its folder, at its start and at its end, and what a later start makes of it.

A sweep that cannot start leaves what an earlier one has left; what is whole is not run again; a finished sweep is left
as it is; what another attempt may cure is tried again by the same command, and nothing else is.
"""

import json
import shutil
from dataclasses import replace

import pytest
from loopback_chat import loopback_chat
from small_plans import CHAT, calls_made, install_doubles, run_in_process, run_jobs_here, write_plan
from typer.testing import CliRunner

from rag_lab._kit.home import home
from rag_lab.cli import app
from rag_lab.config import PipelineConfig
from rag_lab.errors import RagLabError
from rag_lab.experiment.manifest import VariantState
from rag_lab.experiment.run import outputs, run_variants
from rag_lab.experiment.run.outputs import better_of, earlier, move_variant, put_back_all, whole
from rag_lab.experiment.run.run_options import RunOptions
from rag_lab.experiment.run.sweep import post_hoc_margins, run_plan
from rag_lab.memory.ledger import Ledger
from rag_lab.models.protocols import ChatReply
from rag_lab.records import Question, Score, StageRecord, Trace
from rag_lab.runs.human_input import Preference, add_record
from rag_lab.runs.run_folder import RunFolder, VariantPlan, write_json
from rag_lab.runs.variant_files import read_traces, write_scores, write_traces

from .test_sweep import write_experiment

OUTPUTS = ("report.html", "report.md", "scores.parquet", "manifest.json")


@pytest.fixture
def checked(tmp_path, monkeypatch):
    install_doubles(monkeypatch)
    return write_plan(tmp_path)


@pytest.fixture
def finished(checked, tmp_path):
    """A folder in which another plan has been run to its end."""
    run = checked.run_folder(tmp_path / "run")
    run.write_plan()
    for name in OUTPUTS:
        (run.path / name).write_text("precious")
    return run


def spoil_home(run, monkeypatch, tmp_path):
    (home() / "stages.sqlite").write_text("garbage")


def no_home(run, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "file/home"))


def spoil_ledger(run, monkeypatch, tmp_path):
    (run.path / "ledger.sqlite").write_text("hello")


def spoil_notebook(run, monkeypatch, tmp_path):
    monkeypatch.setattr(run_variants, "NOTEBOOK", "notebooks/01_tour.ipynb")


def block_report(run, monkeypatch, tmp_path):
    (run.path / "report.md").unlink()
    (run.path / "report.md").mkdir()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (spoil_home, r"stages\.sqlite is damaged"),
        (no_home, "set RAG_LAB_HOME"),
        (spoil_ledger, r"ledger\.sqlite is damaged"),
        (spoil_notebook, "Unknown parameter of 01_"),
        (block_report, r"report\.md is a folder"),
    ],
)
def test_what_keeps_a_sweep_from_starting_costs_nothing_of_an_earlier_one(
    checked, finished, monkeypatch, tmp_path, spoil, said
):
    spoil(finished, monkeypatch, tmp_path)
    with pytest.raises(RagLabError, match=said):
        run_plan(checked, finished.path, RunOptions(progress=False))
    kept = [path for name in OUTPUTS if (path := finished.path / name).is_file()]
    assert len(kept) >= 3 and {path.read_text() for path in kept} == {"precious"}


def test_a_new_folder_holds_nothing_but_its_lock_before_all_was_tried(checked, monkeypatch, tmp_path):
    spoil_home(None, monkeypatch, tmp_path)
    with pytest.raises(RagLabError, match="is damaged"):
        run_plan(checked, tmp_path / "new", RunOptions(progress=False))
    assert [path.name for path in (tmp_path / "new").iterdir()] == [".lock"]


def run_until_jobs_begin(checked, run, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("rag_lab.experiment.executors.launchers.executor_of", lambda name, slurm: stop)
    with pytest.raises(KeyboardInterrupt):
        run_plan(checked, run.path, RunOptions(progress=False))


def test_a_sweep_that_starts_takes_the_outputs_of_the_earlier_one_away(checked, finished, monkeypatch):
    run_until_jobs_begin(checked, finished, monkeypatch)
    assert not any((finished.path / name).exists() for name in OUTPUTS)
    assert (finished.path / "bill.json").is_file() and (finished.path / "experiment.yaml").is_file()


def test_a_margin_that_comes_after_a_score_is_recorded_as_post_hoc(checked, finished, monkeypatch):
    (finished.variant_dir("baseline")).mkdir(parents=True)
    (finished.variant_dir("baseline") / "done.json").write_text("{}")
    late = replace(checked, experiment=checked.experiment.model_copy(update={"margin": {"retrieval.mrr@10": 0.05}}))
    assert "retrieval.mrr@10 is post hoc" in post_hoc_margins(late, finished.path)
    assert post_hoc_margins(checked, finished.path) == ""
    run_until_jobs_begin(late, finished, monkeypatch)
    recorded = RunFolder.open(finished.path)
    assert (recorded.margins, recorded.post_hoc_margins) == ({"retrieval.mrr@10": 0.05}, ("retrieval.mrr@10",))


WRITTEN = ("report.html", "report.md", "scores.parquet", "plan.json", "experiment.yaml")


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """Start the sweep and return the names of the outputs that it wrote, and of the variants that it ran."""
    install_doubles(monkeypatch)
    checked, done = write_plan(tmp_path), run_jobs_here(monkeypatch)

    def start(checked=checked):
        before, ran = stamps(tmp_path / "run"), len(done)
        run_plan(checked, tmp_path / "run", RunOptions(progress=False))
        after = stamps(tmp_path / "run")
        return {name for name in WRITTEN if before.get(name) != after[name]}, [name for _, name in done[ran:]]

    start.plan = checked
    assert start() == (set(WRITTEN), ["baseline", "final_k-1"])
    return start


def stamps(run):
    return {name: (run / name).stat().st_mtime_ns for name in WRITTEN if (run / name).is_file()}


SPOILT = [("report.md", "half"), ("report.html", None), ("manifest.json", "{"), ("made_of.json", "{")]


@pytest.mark.slow
def test_outputs_are_made_anew_where_one_or_what_they_say_has_changed_and_only_there(sweep, tmp_path):
    """One sweep for all of them: each begins where nothing is left to do."""
    assert sweep() == (set(), [])
    states = RunFolder.open(tmp_path / "run").manifest()["variants"].values()
    assert all(state["resumed"] for state in states)
    for name, text in SPOILT:
        if text is None:
            (tmp_path / "run" / name).unlink()
        else:
            (tmp_path / "run" / name).write_text(text)
        assert (name, sweep()) == (name, (set(WRITTEN), []))
        assert (name, sweep()) == (name, (set(), []))
    add_record(tmp_path / "run", Preference("q1", "baseline", "final_k-1", "left", "shown"))
    assert sweep() == (set(WRITTEN), [])
    assert sweep() == (set(), [])
    path = tmp_path / "run/variants/final_k-1/scores.parquet"
    path.write_bytes(path.read_bytes()[:50])
    assert sweep() == (set(WRITTEN), ["final_k-1"])
    late = sweep.plan.experiment.model_copy(update={"margin": {"retrieval.mrr@10": 0.05}})
    assert sweep(replace(sweep.plan, experiment=late)) == (set(WRITTEN), [])


@pytest.mark.slow
def test_another_code_runs_everything_again_and_another_page_is_made_anew(sweep, monkeypatch):
    monkeypatch.setattr("rag_lab.experiment.manifest.code_digest", lambda: "changed")
    assert sweep() == (set(WRITTEN), ["baseline", "final_k-1"])
    monkeypatch.setattr(outputs, "files_digest", lambda *_: "another template")
    assert sweep() == (set(WRITTEN), [])


@pytest.fixture
def run(tmp_path):
    """A run whose variant `a` is whole, with one question that another attempt may cure."""
    plans = (VariantPlan("a", "a"),)
    found = RunFolder(tmp_path / "whole", "n", "q", "d", "a", (), 1, plans, questions=("q1", "q2"))
    write_variant(found, curable=1)
    return found


def write_variant(run, curable):
    folder = run.variant_dir("a")
    folder.mkdir(parents=True)
    write_traces(folder / "traces.jsonl", [Trace(Question(name, "why?")) for name in run.questions])
    write_scores(folder / "scores.parquet", {"a": [Score("q1", "cost.seconds", 0, 1.0, "scored")]})
    config = PipelineConfig().override({"rerank.final_k": 3, "answer.name": "none"})
    (folder / "config.yaml").write_text(config.to_yaml())
    write_json(folder / "passages.json", {"p1": "The valve"})
    curables = {"questions": curable, "scores": 0}
    write_json(folder / "record.json", {"config_identity": config.identity, "curable": curables})
    write_json(folder / "done.json", {"identity": "same", "seconds": 3.0})


def test_what_is_whole_and_the_same_is_kept(run):
    state = whole(run, "a", "same")
    assert (state.status, state.resumed, state.seconds) == ("ok", True, 3.0)
    assert set(state.record) == {"config_identity", "curable"}
    assert whole(run, "a", "another") is None


@pytest.mark.parametrize(
    "name", ["config.yaml", "traces.jsonl", "scores.parquet", "passages.json", "record.json", "done.json"]
)
@pytest.mark.parametrize("part", [0, 0.5])
def test_what_was_cut_in_a_crash_runs_again_and_is_said(run, caplog, name, part):
    path = run.variant_dir("a") / name
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * part)])
    assert whole(run, "a", "same") is None
    (said,) = caplog.messages
    assert said.startswith(f"Variant a runs again: {path} is damaged (")


def test_a_variant_with_a_trace_missing_runs_again(run, caplog):
    path = run.variant_dir("a") / "traces.jsonl"
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    assert whole(run, "a", "same") is None
    assert "it holds 1 traces where 2 are planned" in caplog.text


ANSWERED = 2  # questions of each of the two variants
DOWN = ChatReply(error="the server answered with status 500", transient=True)


@pytest.mark.slow
def test_the_same_command_cures_an_outage_and_then_has_nothing_to_do(tmp_path, monkeypatch):
    run_jobs_here(monkeypatch)
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
