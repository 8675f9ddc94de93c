"""A finished sweep that is started again: its outputs stay, and are made anew where their inputs changed."""

from dataclasses import replace

import pytest
from in_process import run_in_process
from whole_plan import install_doubles, write_plan

from rag_lab.experiment.run import finished
from rag_lab.experiment.run.run_options import RunOptions
from rag_lab.experiment.run.sweep import run_plan
from rag_lab.runs.preferences import Preference, add_preference
from rag_lab.runs.run_folder import RunFolder

OUTPUTS = ("report.html", "report.md", "scores.parquet", "plan.json", "experiment.yaml")


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """Start the sweep and return the names of the outputs that it wrote, and of the variants that it ran."""
    install_doubles(monkeypatch)
    checked, done = write_plan(tmp_path), run_in_process(monkeypatch)

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
    monkeypatch.setattr("rag_lab.experiment.identity.code_digest", lambda: "changed")
    assert sweep() == (set(OUTPUTS), ["baseline", "final_k-1"])
    monkeypatch.setattr(finished, "_page_digest", lambda: "another template")
    assert sweep() == (set(OUTPUTS), [])
