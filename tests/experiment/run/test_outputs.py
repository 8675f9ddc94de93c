"""A sweep that cannot start leaves what an earlier one has left in the folder."""

from dataclasses import replace

import pytest
from small_plans import install_doubles, write_plan

from rag_lab._kit.home import home
from rag_lab.errors import RagLabError
from rag_lab.experiment.run import run_variants
from rag_lab.experiment.run.run_options import RunOptions
from rag_lab.experiment.run.sweep import post_hoc_margins, run_plan
from rag_lab.runs.run_folder import RunFolder

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


def test_a_sweep_that_starts_takes_the_outputs_of_the_earlier_one_away(checked, finished, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_variants, "executor_of", lambda name, slurm: stop)
    with pytest.raises(KeyboardInterrupt):
        run_plan(checked, finished.path, RunOptions(progress=False))
    assert not any((finished.path / name).exists() for name in OUTPUTS)
    assert (finished.path / "bill.json").is_file() and (finished.path / "experiment.yaml").is_file()


def test_a_margin_that_comes_after_a_score_is_recorded_as_post_hoc(checked, finished, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    (finished.variant_dir("baseline")).mkdir(parents=True)
    (finished.variant_dir("baseline") / "done.json").write_text("{}")
    late = replace(checked, experiment=checked.experiment.model_copy(update={"margin": {"retrieval.mrr@10": 0.05}}))
    assert "retrieval.mrr@10 is post hoc" in post_hoc_margins(late, finished.path)
    assert post_hoc_margins(checked, finished.path) == ""
    monkeypatch.setattr(run_variants, "executor_of", lambda name, slurm: stop)
    with pytest.raises(KeyboardInterrupt):
        run_plan(late, finished.path, RunOptions(progress=False))
    recorded = RunFolder.open(finished.path)
    assert (recorded.margins, recorded.post_hoc_margins) == ({"retrieval.mrr@10": 0.05}, ("retrieval.mrr@10",))
