"""A run folder from somebody else, in which links lead to files of whoever reads it."""

import os
import subprocess
import sys

import pytest
from small_plans import write_machines_sweep
from synthetic_run import GRID, MAIN, factorial, write_run

from rag_lab.errors import RagLabError
from rag_lab.experiment.run.sweep import sweep
from rag_lab.runs.run_folder import PLAN_FILE, RunFolder

NAMES = ("questions", "report.html", "report.md", "ledger.sqlite", ".lock", "variants/none-none/traces.jsonl")


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path / "run", GRID, {MAIN: factorial()}).path


@pytest.fixture
def mine(tmp_path):
    """A folder of one's own, whose files have names that a report would take for its own."""
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("q-1.html", "notes.txt"):
        (folder / name).write_text("mine")
    return folder


def put_link(path, target):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("target", ["folder", "file", "nothing"])
def test_no_run_is_opened_of_which_a_link_leads_out(run, mine, name, target):
    put_link(run / name, {"folder": mine, "file": mine / "notes.txt", "nothing": mine / "new"}[target])
    with pytest.raises(RagLabError, match=f"{name} is a link that leads out of the run, so nothing is read or written"):
        RunFolder.open(run)


def test_links_within_a_run_and_to_it_are_followed(run, tmp_path):
    put_link(run / "latest", run / "variants")
    put_link(tmp_path / "best", run)
    assert RunFolder.open(tmp_path / "best").name == RunFolder.open(run).name


def test_links_that_lead_to_each_other_and_what_is_no_file_are_refused(run):
    os.mkfifo(run / "manifest.draft.json")
    with pytest.raises(RagLabError, match=r"draft\.json is neither a file nor a folder, as no run has one; remove it"):
        RunFolder.open(run)
    (run / "manifest.draft.json").unlink()
    put_link(run / "one", run / "other")
    put_link(run / "other", run / "one")
    with pytest.raises(RagLabError, match="is a link that leads out"):
        RunFolder.open(run)


@pytest.mark.parametrize("name", ["../../mine", "/mine", "a/b", "..", "", "a\\\\b"])
def test_no_variant_lies_outside_of_its_run(run, name):
    plan = run / PLAN_FILE
    plan.write_text(plan.read_text().replace('"none-none"', f'"{name}"'))
    with pytest.raises(RagLabError, match="cannot be the name of a folder"):
        RunFolder.open(run)


def test_a_report_writes_and_deletes_nothing_through_a_link(run, mine):
    put_link(run / "questions", mine)
    command = "from rag_lab.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", command, "report", str(run)], capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"rag-lab: {run}/questions is a link that leads out of the run")
    assert sorted(path.name for path in mine.iterdir()) == ["notes.txt", "q-1.html"]


def test_a_sweep_writes_nothing_through_a_link(tmp_path, mine):
    put_link(tmp_path / "run" / "variants", mine)
    with pytest.raises(RagLabError, match="variants is a link that leads out"):
        sweep(write_machines_sweep(tmp_path), tmp_path / "run", progress=False)
    assert sorted(path.name for path in mine.iterdir()) == ["notes.txt", "q-1.html"]
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["variants"]
