"""What is whole is not run again; a finished sweep is left as it is."""

from dataclasses import replace

import pytest
from small_plans import install_doubles, run_jobs_here, write_plan

from rag_lab.config import PipelineConfig
from rag_lab.experiment.run import outputs
from rag_lab.experiment.run.outputs import whole
from rag_lab.experiment.run.run_options import RunOptions
from rag_lab.experiment.run.sweep import run_plan
from rag_lab.records import Question, Score, Trace
from rag_lab.runs.human_input import Preference, add_preference
from rag_lab.runs.run_folder import RunFolder, VariantPlan, write_json
from rag_lab.runs.variant_files import write_scores, write_traces

OUTPUTS = ("report.html", "report.md", "scores.parquet", "plan.json", "experiment.yaml")


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """Start the sweep and return the names of the outputs that it wrote, and of the variants that it ran."""
    install_doubles(monkeypatch)
    checked, done = write_plan(tmp_path), run_jobs_here(monkeypatch)

    def start(checked=checked):
        before, ran = stamps(tmp_path / "run"), len(done)
        run_plan(checked, tmp_path / "run", RunOptions(progress=False))
        after = stamps(tmp_path / "run")
        return {name for name in OUTPUTS if before.get(name) != after[name]}, [name for _, name in done[ran:]]

    start.plan = checked
    assert start() == (set(OUTPUTS), ["baseline", "final_k-1"])
    return start


def stamps(run):
    return {name: (run / name).stat().st_mtime_ns for name in OUTPUTS if (run / name).is_file()}


def prefer(run):
    add_preference(run, Preference("q1", "baseline", "final_k-1", "left", "shown"))


def cut_report(run):
    (run / "report.md").write_text("half")


def lose_report(run):
    (run / "report.html").unlink()


def cut_manifest(run):
    (run / "manifest.json").write_text("{")


def cut_record(run):
    (run / "made_of.json").write_text("{")


def test_nothing_is_made_anew_where_nothing_changed(sweep, tmp_path):
    assert sweep() == (set(), [])
    states = RunFolder.open(tmp_path / "run").manifest()["variants"].values()
    assert all(state["resumed"] for state in states)
    assert sweep() == (set(), [])


@pytest.mark.parametrize("change", [prefer, cut_report, lose_report, cut_manifest, cut_record])
def test_outputs_are_made_anew_where_one_or_what_they_say_has_changed(sweep, tmp_path, change):
    change(tmp_path / "run")
    assert sweep() == (set(OUTPUTS), [])
    assert sweep() == (set(), [])


def test_a_variant_whose_scores_were_cut_runs_again_and_its_report_is_made_anew(sweep, tmp_path):
    path = tmp_path / "run/variants/final_k-1/scores.parquet"
    path.write_bytes(path.read_bytes()[:50])
    assert sweep() == (set(OUTPUTS), ["final_k-1"])


def test_a_margin_that_is_declared_later_makes_the_report_anew(sweep):
    late = sweep.plan.experiment.model_copy(update={"margin": {"retrieval.mrr@10": 0.05}})
    assert sweep(replace(sweep.plan, experiment=late)) == (set(OUTPUTS), [])


def test_another_code_runs_everything_again_and_another_page_is_made_anew(sweep, monkeypatch):
    monkeypatch.setattr("rag_lab.experiment.manifest.code_digest", lambda: "changed")
    assert sweep() == (set(OUTPUTS), ["baseline", "final_k-1"])
    monkeypatch.setattr(outputs, "_page_digest", lambda: "another template")
    assert sweep() == (set(OUTPUTS), [])


@pytest.fixture
def run(tmp_path):
    found = RunFolder(tmp_path, "n", "q", "d", "a", (), 1, (VariantPlan("a", "a"),), questions=("q1", "q2"))
    folder = found.variant_dir("a")
    folder.mkdir(parents=True)
    write_traces(folder / "traces.jsonl", [Trace(Question(name, "why?")) for name in found.questions])
    write_scores(folder / "scores.parquet", {"a": [Score("q1", "cost.seconds", 0, 1.0, "scored")]})
    config = PipelineConfig().override({"rerank.final_k": 3, "answer.name": "none"})
    (folder / "config.yaml").write_text(config.to_yaml())
    write_json(folder / "passages.json", {"p1": "The valve"})
    write_json(folder / "record.json", {"config_identity": config.identity})
    write_json(folder / "done.json", {"identity": "same", "seconds": 3.0})
    return found


def test_what_is_whole_and_the_same_is_kept(run):
    state = whole(run, "a", "same")
    assert (state.status, state.resumed, state.seconds) == ("ok", True, 3.0)
    assert set(state.record) == {"config_identity"}
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
